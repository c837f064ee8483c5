# SPDX-License-Identifier: Apache-2.0
"""Finds the functions and classes of C++ sources by their braces, without a compiler.

Good enough to count with: it knows namespaces, nested classes, methods that are defined in another file,
constructors with initialisers in braces, and the annotations of base/platform.h. What stands inside a function
is not looked at.
"""

import dataclasses
import re

TOKEN = re.compile(
    r"""//[^\n]*|/\*.*?\*/            # comments
    |R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"  # raw strings
    |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'  # strings and characters
    |^[ \t]*\#(?:\\\n|[^\n])*         # preprocessor lines
    """,
    re.S | re.X | re.M,
)
# A digit separator, which would otherwise open a character.
SEPARATOR = re.compile(r"(?<=[0-9a-fA-F])'(?=[0-9a-fA-F])")
ATTRIBUTE = re.compile(r"\[\[.*?\]\]|\b(?:NEREID_\w+|alignas|decltype|explicit|noexcept|__attribute__)\s*\(\)")
OPERATOR = re.compile(r"\boperator\s*(?:\(\s*\)|[^\w\s(]+|[\w:<>*& ]+?)(?=\s*\()")
CLASS = re.compile(
    r"\b(class|struct|union)\b\s*(?:NEREID_\w+\s+)*([A-Za-z_][\w:]*)?\s*(?:final\b\s*)?(?::(?!:)[^=]*)?$", re.S
)
NAMESPACE = re.compile(r"\bnamespace\b\s*([\w:]*)$")
LABEL = re.compile(r"^(?:\s*(?:public|private|protected)\s*:(?!:))+")
SHARED = re.compile(r"\b(?:[Mm]utex|CondVar|condition_variable|atomic|[Tt]hread)\b|GUARDED_BY")
NOT_DATA = re.compile(r"(?:using|typedef|friend|static|template|enum|extern|constexpr|static_assert)\b|(?:class|struct|union)\s+[\w:]+$")


def without_comments(text):
    """The text without comments; line breaks stay."""
    return TOKEN.sub(
        lambda match: re.sub(r"[^\n]", " ", match.group()) if match.group().startswith(("//", "/*")) else match.group(),
        SEPARATOR.sub("_", text),
    )


def blank(text):
    """The text without comments, strings and preprocessor lines; line breaks stay."""
    return TOKEN.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), SEPARATOR.sub("_", text))


@dataclasses.dataclass
class Function:
    first: int
    last: int
    head: str
    # The names of the namespaces and classes around it; those in its own name, as in A::B::F(), are the last.
    scope: tuple

    @property
    def parameters(self):
        """How many parameters it has, or 0 where its head is not understood."""
        opening = re.search(r"(?:\boperator\s*\(\s*\)|[\w>~!=<+*/&|%-])\s*\(", ATTRIBUTE.sub(" ", self.head))
        if not opening:
            return 0
        inside, depth = "", 1
        for character in ATTRIBUTE.sub(" ", self.head)[opening.end():]:
            depth += (character in "([{") - (character in ")]}")
            if depth == 0:
                break
            inside += character
        inside = shape(inside.replace("->", ""))
        return inside.count(",") + 1 if inside.strip() not in ("", "void") else 0


@dataclasses.dataclass
class Class:
    first: int
    last: int
    kind: str
    scope: tuple
    fields: int = 0
    # Whether it has a method that changes it, or a lock, an atomic or a thread among its fields.
    has_state: bool = False


def shape(text):
    """A declaration with its parentheses and braces emptied, without template arguments and attributes."""

    def collapse(pattern, mark, text):
        count = 1
        while count:
            text, count = re.subn(pattern, mark, text)
        return text

    text = OPERATOR.sub("operator_", text)
    text = collapse(r"\([^()]*\)", "\x01", text).replace("\x01", "()")
    text = collapse(r"\{[^{}]*\}", "\x02", text).replace("\x02", "{}")
    text = ATTRIBUTE.sub(" ", text)
    return collapse(r"<[^<>;]*>", "", text)


def owner_of(head):
    """The classes that a function's head names in front of its own name: ("A", "B") in void A<T>::B::F()."""
    match = re.search(r"([\w:~]+)\s*\(\)", shape(head))
    return tuple(part for part in match[1].split("::")[:-1] if part) if match else ()


def opens(head):
    """What a brace behind `head` opens at namespace or class level: ("class", kind, name), ("namespace", name),
    "enum", "function" or "value"."""
    flat = LABEL.sub("", shape(head)).strip()
    if match := NAMESPACE.search(flat):
        return ("namespace", match[1])
    if flat == "extern":
        return ("namespace", "")
    if re.search(r"\benum\b[^()=]*$", flat):
        return "enum"
    if match := CLASS.search(flat):
        return ("class", match[1], match[2] or "")
    if "()" not in flat or "=" in flat.split("()")[0] or re.search(r"\)\s*=", flat):
        return "value"
    # A member's initialiser in braces, before the body of a constructor.
    initialisers = re.search(r"\(\)[\w\s]*:(?!:)(.*)$", flat, re.S)
    if initialisers and re.search(r"(?:^|,)\s*[\w:]+\s*$", initialisers[1]):
        return "value"
    return "function"


def count_fields(statement, name):
    """How many data members one statement of a class declares, and whether it shows that the class has a state:
    a method that changes the object, or a field that several threads use."""
    flat = LABEL.sub("", shape(statement)).strip()
    if not flat or NOT_DATA.match(flat) or "operator_" in flat:
        return 0, False
    declared = re.split(r"=|\{", flat, maxsplit=1)[0]
    # A pointer to a function looks like one, but for its star.
    if "()" in declared and not re.search(r"\(\s*\*\s*\w+\s*\)\s*\(", statement):
        return 0, changes(flat, name)
    return declared.count(",") + 1, bool(SHARED.search(statement))


def changes(flat, name):
    """Whether a method may change its object: one that is not const, static, a constructor or a destructor."""
    flat = LABEL.sub("", flat).strip()
    match = re.search(r"([\w~]+)\s*\(\)\s*(\w*)", flat)
    if not match or re.match(r"(?:template\s+)?(?:static|friend)\b", flat) or "operator_" in flat:
        return False
    return match[1] not in (name, "~" + name) and not match[1].isupper() and match[2] != "const"


def read(text):
    """The functions and the classes of a file, each in the order of their ends."""
    text = blank(text)
    functions, classes = [], []
    scopes = []  # (what was opened, its object), innermost last
    names = []  # of the namespaces and classes that are open
    start, line = 0, 1  # where the current statement begins; the current line
    inside = 0  # how many functions, enums and values are open: what stands in them is not looked at
    for position, character in enumerate(text):
        if character == "\n":
            line += 1
        elif character == "{":
            head = text[start:position]
            what = "value" if inside else opens(head)
            first = line - LABEL.sub("", head).lstrip().count("\n")
            opened = None
            if what == "function":
                opened = Function(first, line, " ".join(LABEL.sub("", head).split()), (*names, *owner_of(head)))
                if scopes and scopes[-1][0] == "class":
                    scopes[-1][1].has_state |= changes(shape(head), names[-1])
            elif what[0] == "namespace":
                what, opened = "namespace", what[1].split("::")
                names += opened
            elif what[0] == "class":
                names.append(what[2] or "(unnamed)")
                what, opened = "class", Class(first, line, what[1], tuple("::".join(names).split("::")))
            if what in ("namespace", "class"):
                start = position + 1
            else:
                inside += 1
            scopes.append((what, opened))
        elif character == "}" and scopes:
            what, closed = scopes.pop()
            if what == "namespace":
                del names[-len(closed) :]
            elif what == "class":
                names.pop()
                closed.last = line
                classes.append(closed)
            else:
                inside -= 1
                if what == "function":
                    closed.last = line
                    functions.append(closed)
            # Behind a value in braces its statement goes on.
            if what != "value":
                start = position + 1
        elif character == ";" and not inside:
            if scopes and scopes[-1][0] == "class":
                fields, behaves = count_fields(text[start:position], names[-1])
                scopes[-1][1].fields += fields
                scopes[-1][1].has_state |= behaves
            start = position + 1
    return functions, classes
