# SPDX-License-Identifier: Apache-2.0
"""The colours of all plots and pages, and the beginning of a plot as SVG.

The same colours are in src/cli/plot_palette.h (reports of `nereid bench` and `nereid tune`), console/src/style.css and
tools/site/site.css; tools/plot_style_test.py compares the four, and holds them to contrast and to eyes that do not
see all colours.
"""

# For light and for dark screens.
COLOURS = {
    "back": ("#f5f7f8", "#10171d"),
    "card": ("#ffffff", "#18222b"),
    "text": ("#17212b", "#e6edf2"),
    "muted": ("#52606d", "#a3b2bf"),
    "line": ("#d5dce2", "#33424f"),
    "accent": ("#00695c", "#4db6a9"),
    "on-accent": ("#ffffff", "#06201d"),
    "good": ("#14663a", "#7fdba3"),
    "bad": ("#a11527", "#ffa3ad"),
    # What is shown, in the order of use: the first is ours, or the usual; the second is what is slow or goes wrong.
    "c1": ("#00796b", "#4db6a9"),
    "c2": ("#b0170c", "#ff8162"),
    "c3": ("#9f7f12", "#edd473"),
    "c4": ("#6b00a9", "#a664fe"),
    "c5": ("#0c84fa", "#538eb0"),
    "c6": ("#d53daf", "#fc94e6"),
    "c7": ("#590915", "#ee560c"),
    "c8": ("#2c1262", "#d1e7ff"),
    # What something is compared with; beside the first five.
    "past": ("#8a8f94", "#696c6e"),
}
SERIES = [name for name in COLOURS if name[1:].isdigit()] + ["past"]


def _rules(scheme):
    """Style for one scheme. Names of colours are classes: of areas that they fill, and of lines that they draw."""
    colour = {name: pair[scheme] for name, pair in COLOURS.items()}
    rules = [f"text{{fill:{colour['text']}}}.muted{{fill:{colour['muted']}}}.card{{fill:{colour['card']}}}"]
    rules += [f".{name}{{fill:{colour[name]}}}polyline.{name}{{fill:none;stroke:{colour[name]}}}" for name in SERIES]
    return "".join([*rules, f"line{{stroke:{colour['line']}}}"])


def svg(width, height, body):
    """A picture that is light or dark as the reader's screen, and no wider than the window that it is opened in."""
    style = (
        f"svg{{font:12px system-ui,sans-serif;max-width:100%;height:auto}}{_rules(0)}"
        f"@media(prefers-color-scheme:dark){{{_rules(1)}}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f'<style>{style}</style><rect class="card" width="100%" height="100%"/>{body}</svg>\n'
    )


def swatch(name):
    """The key to a colour, inside of a text."""
    return f'<tspan class="{name}">■</tspan> '
