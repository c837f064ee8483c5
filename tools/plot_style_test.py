#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the colours of plots and pages to each other, to contrast, and to eyes that do not see all colours."""

import itertools
import math
import pathlib
import re
import unittest

from plot_style import COLOURS, SERIES, svg

ROOT = pathlib.Path(__file__).resolve().parents[1]
SCHEMES = ("light", "dark")
# By WCAG 2.2: of text, and of lines and areas that carry meaning.
TEXT, GRAPHICS = 4.5, 3
# How far apart two colours are in OKLab times 100; about 2 is the least that is seen side by side.
APART = 9
# Colours of linear light as eyes without one kind of cones see them (Machado, Oliveira, Fernandes 2009).
EYES = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
TO_CONES = ((0.41222147, 0.53633254, 0.05144599), (0.21190350, 0.68069955, 0.10739696), (0.08830246, 0.28171884, 0.62997870))
TO_OKLAB = ((0.21045426, 0.79361778, -0.00407205), (1.97799850, -2.42859221, 0.45059371), (0.02590404, 0.78277177, -0.80867577))


def times(matrix, vector):
    return [sum(factor * part for factor, part in zip(row, vector, strict=True)) for row in matrix]


def linear(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def contrast(one, other):
    light, dark = sorted((sum(times([(0.2126, 0.7152, 0.0722)], linear(each))) for each in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def distance(one, other, eyes):
    def seen(colour):
        light = [min(1, max(0, part)) for part in times(EYES[eyes], linear(colour))]
        return times(TO_OKLAB, [part ** (1 / 3) for part in times(TO_CONES, light)])

    return 100 * math.dist(seen(one), seen(other))


def variables(text):
    """{name: colour} of the declarations in a part of a style sheet, of the names that plots know."""
    return {name: colour for name, colour in re.findall(r"--([\w-]+): (#[0-9a-f]{6});", text) if name in COLOURS}


class PlotStyle(unittest.TestCase):
    def expect(self, found, names, where):
        """`found` is {name: (light, dark)}; all of `names` are there."""
        self.assertLessEqual(set(names), set(found), where)
        self.assertEqual(found, {name: COLOURS[name] for name in found}, where)

    def test_reports_of_the_program_have_these_colours(self):
        text = (ROOT / "src/cli/plot_palette.h").read_text()
        found = re.findall(r'\{"([\w-]+)", "(#[0-9a-f]{6})", "(#[0-9a-f]{6})"\}', text)
        self.expect({name: (light, dark) for name, light, dark in found}, ["card", "text", *SERIES], "plot_palette.h")

    def test_the_console_has_these_colours(self):
        text = (ROOT / "console/src/style.css").read_text()
        found = re.findall(r"--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\);", text)
        colours = {name: (light, dark) for name, light, dark in found if name in COLOURS}
        self.expect(colours, ["card", "text", "accent", "c1", "c2", "c3", "c4"], "style.css")

    def test_the_documentation_has_these_colours(self):
        text = (ROOT / "tools/site/site.css").read_text()
        light, dark = (variables(re.search(rf'\[data-md-color-scheme="{name}"\] {{(.*?)}}', text, re.DOTALL)[1])
                       for name in ("default", "slate"))  # fmt: skip
        self.assertEqual(set(light), set(dark))
        self.expect({name: (light[name], dark[name]) for name in light}, ["card", "text", "accent"], "site.css")

    def test_the_plots_of_the_documents_have_these_colours(self):
        plots = sorted((ROOT / "docs").glob("*/*.svg"))
        self.assertTrue(plots)
        for path in plots:
            text = path.read_text()
            size = re.search(r'width="(\d+)" height="(\d+)"', text)
            head, _, body = text.partition("</style>")
            self.assertEqual(head, svg(size[1], size[2], "").partition("</style>")[0], path.name)
            self.assertIsNone(re.search(r'(fill|stroke)="', body), path.name)

    def test_texts_and_plots_stand_out(self):
        for scheme, background in itertools.product(range(2), ("back", "card")):
            for name in ("text", "muted", "accent", "good", "bad", *SERIES):
                least = GRAPHICS if name in SERIES else TEXT
                found = contrast(COLOURS[name][scheme], COLOURS[background][scheme])
                self.assertGreaterEqual(found, least, f"{name} on {background}, {SCHEMES[scheme]}")
        for scheme in range(2):
            self.assertGreaterEqual(contrast(COLOURS["accent"][scheme], COLOURS["on-accent"][scheme]), TEXT)

    def test_everybody_can_tell_the_colours_of_a_plot_apart(self):
        pairs = list(itertools.combinations([name for name in SERIES if name != "past"], 2))
        pairs += [("past", name) for name in SERIES[:5]]
        for scheme, eyes, (one, other) in itertools.product(range(2), EYES, pairs):
            found = distance(COLOURS[one][scheme], COLOURS[other][scheme], eyes)
            self.assertGreaterEqual(found, APART, f"{one} and {other}, {SCHEMES[scheme]}, {eyes}")


if __name__ == "__main__":
    unittest.main()
