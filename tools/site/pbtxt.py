# SPDX-License-Identifier: Apache-2.0
"""Colours for protobuf's text format, the language of config.pbtxt, which the generator's highlighter lacks."""

import pygments.lexers
from pygments.lexer import RegexLexer, bygroups
from pygments.token import Comment, Keyword, Name, Number, Punctuation, String, Whitespace

__all__ = ["TextFormat"]


class TextFormat(RegexLexer):
    name = "Protobuf text format"
    aliases = ["pbtxt"]
    tokens = {
        "root": [
            (r"\s+", Whitespace),
            (r"#.*?$", Comment.Single),
            (r'"(\\.|[^"\\])*"', String.Double),
            (r"'(\\.|[^'\\])*'", String.Single),
            (r"([A-Za-z_]\w*)(\s*)(:)", bygroups(Name.Attribute, Whitespace, Punctuation)),
            (r"([A-Za-z_]\w*)(\s*)(?=[{\[])", bygroups(Name.Attribute, Whitespace)),
            (r"-?\d+(\.\d+)?([eE][+-]?\d+)?", Number),
            (r"(true|false)\b", Keyword.Constant),
            (r"[A-Z][A-Z0-9_]*\b", Name.Constant),
            (r"[^\s]", Punctuation),
        ]
    }


def on_startup(**_):
    """Called by the generator, for which this file is a hook: makes the highlighter find the language by its name."""
    pygments.lexers.LEXERS["TextFormat"] = ("pbtxt", TextFormat.name, tuple(TextFormat.aliases), (), ())
