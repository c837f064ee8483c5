#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes nereid.json, the dashboard for Grafana, from the panels in panels.py.

Grafana's JSON repeats for each panel what all of them have, and places each by coordinates; here a panel is a few
lines. Run this after each change of panels.py. A test holds the file to what this writes.

usage: deploy/grafana/make_dashboard.py [FILE]
"""

import json
import pathlib
import sys

sys.path.append(str(pathlib.Path(__file__).parent))

from panels import ROWS  # noqa: E402

HERE = pathlib.Path(__file__).parent
# Of Grafana 13. Grafana migrates older dashboards by itself, and older versions read what they know of newer ones.
SCHEMA_VERSION = 42
COLUMNS = 24
DATA_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def targets(panel):
    return [
        {
            "datasource": DATA_SOURCE,
            "editorMode": "code",
            "expr": expression,
            "format": "heatmap" if panel.kind == "heatmap" else "time_series",
            "instant": False,
            "legendFormat": legend,
            "range": True,
            "refId": chr(ord("A") + i),
        }
        for i, (legend, expression) in enumerate(panel.queries)
    ]


def thresholds(steps=()):
    """Green, and from each (value, colour) on another one."""
    first = [{"color": "green", "value": None}]
    return {"mode": "absolute", "steps": first + [{"color": color, "value": value} for value, color in steps]}


def lines(panel):
    """A panel of lines over time; stacked areas if the parts make a whole."""
    custom = {
        "drawStyle": "line",
        "fillOpacity": 40 if panel.stacked else 8,
        "lineInterpolation": "linear",
        "lineWidth": 1,
        "pointSize": 4,
        "showPoints": "never",
        "spanNulls": False,
        "stacking": {"group": "A", "mode": "normal" if panel.stacked else "none"},
        "thresholdsStyle": {"mode": "line" if panel.steps else "off"},
    }
    defaults = {
        "color": {"mode": "palette-classic"},
        "custom": custom,
        "min": 0,
        "thresholds": thresholds(panel.steps),
        "unit": panel.unit,
    }
    options = {
        "legend": {"calcs": ["lastNotNull", "max"], "displayMode": "table", "placement": "bottom", "showLegend": True},
        "tooltip": {"hideZeros": False, "mode": "multi", "sort": "desc"},
    }
    return "timeseries", defaults, options


def number(panel):
    """One number, coloured by its bounds."""
    defaults = {
        "color": {"mode": "thresholds"},
        "noValue": "no data",
        "thresholds": thresholds(panel.steps),
        "unit": panel.unit,
    }
    options = {
        "colorMode": "background",
        "graphMode": "area",
        "justifyMode": "auto",
        "orientation": "auto",
        "percentChangeColorMode": "standard",
        "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        "showPercentChange": False,
        "textMode": "auto",
        "wideLayout": True,
    }
    return "stat", defaults, options


def states(panel):
    """When something was well (1) and when not (0)."""
    mappings = [
        {
            "type": "value",
            "options": {"0": {"color": "red", "index": 0, "text": "no"}, "1": {"color": "green", "index": 1, "text": "yes"}},
        }
    ]
    defaults = {
        "color": {"mode": "thresholds"},
        "custom": {"fillOpacity": 70, "lineWidth": 0},
        "mappings": mappings,
        "thresholds": {"mode": "absolute", "steps": [{"color": "red", "value": None}, {"color": "green", "value": 1}]},
        "unit": panel.unit,
    }
    options = {
        "alignValue": "left",
        "legend": {"calcs": [], "displayMode": "list", "placement": "bottom", "showLegend": False},
        "mergeValues": True,
        "rowHeight": 0.8,
        "showValue": "never",
        "tooltip": {"hideZeros": False, "mode": "single", "sort": "none"},
    }
    return "state-timeline", defaults, options


def heatmap(panel):
    """How often each bucket of a histogram was hit, over time."""
    defaults = {"custom": {"scaleDistribution": {"type": "linear"}}}
    options = {
        "calculate": False,
        "cellGap": 1,
        "color": {
            "exponent": 0.5,
            "fill": "dark-orange",
            "mode": "scheme",
            "reverse": False,
            "scale": "exponential",
            "scheme": "Oranges",
            "steps": 64,
        },
        "exemplars": {"color": "rgba(255,0,255,0.7)"},
        "filterValues": {"le": 1e-9},
        "legend": {"show": True},
        "rowsFrame": {"layout": "auto"},
        "showValue": "never",
        "tooltip": {"mode": "single", "showColorScale": False, "yHistogram": False},
        "yAxis": {"axisPlacement": "left", "reverse": False, "unit": panel.unit},
    }
    return "heatmap", defaults, options


KINDS = {"lines": lines, "number": number, "states": states, "heatmap": heatmap}


def panel_json(panel, number_of_panel, place):
    plugin, defaults, options = KINDS[panel.kind](panel)
    return {
        "datasource": DATA_SOURCE,
        "description": panel.description,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "gridPos": place,
        "id": number_of_panel,
        "options": options,
        "targets": targets(panel),
        "title": panel.title,
        "type": plugin,
    }


def layout():
    """All rows with their panels below each other. The panels of a row that is closed at first are inside it."""
    placed, y, count = [], 0, 0
    for row in ROWS:
        count += 1
        header = {
            "collapsed": row.is_closed,
            "gridPos": {"h": 1, "w": COLUMNS, "x": 0, "y": y},
            "id": count,
            "panels": [],
            "title": row.title,
            "type": "row",
        }
        placed.append(header)
        inside = header["panels"] if row.is_closed else placed
        y += 1
        x = height = 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y = 0, y + height
                height = 0
            count += 1
            inside.append(panel_json(panel, count, {"h": panel.height, "w": panel.width, "x": x, "y": y}))
            x += panel.width
            height = max(height, panel.height)
        y += height
    return placed


def variable(name, label, query, **more):
    """A variable whose values are those of a label in the data."""
    return {
        "current": {"text": "All", "value": "$__all"},
        "datasource": DATA_SOURCE,
        "includeAll": True,
        "label": label,
        "multi": True,
        "name": name,
        "options": [],
        "query": {"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"},
        "refresh": 2,
        "regex": "",
        "sort": 1,
        "type": "query",
        **more,
    }


def variables():
    source = {
        "includeAll": False,
        "label": "Prometheus",
        "multi": False,
        "name": "datasource",
        "options": [],
        "query": "prometheus",
        "refresh": 1,
        "regex": "",
        "type": "datasource",
    }
    # All means whatever there is, also what has no metrics at the moment; of jobs only those with such metrics, because
    # `up` is of every job.
    all_of = {"allValue": ".*"}
    of_job = 'job=~"$job"'
    of_instance = f'{of_job}, instance=~"$instance"'
    of_model = f'{of_instance}, model=~"$model"'
    counter = "nv_inference_count"
    # A server without a model has no counters of models; Triton's servers have nothing else.
    server = f'__name__=~"{counter}|nereid_server_live"'
    return [
        source,
        variable("job", "Job", f"label_values({{{server}}}, job)"),
        variable("instance", "Server", f"label_values({{{server}, {of_job}}}, instance)", **all_of),
        variable("model", "Model", f"label_values({counter}{{{of_instance}}}, model)", **all_of),
        variable("version", "Version", f"label_values({counter}{{{of_model}}}, version)", **all_of),
    ]


def firing_alerts():
    """A mark at the time when an alert of rules.yml begins to fire."""
    return {
        "datasource": DATA_SOURCE,
        "enable": True,
        "expr": 'ALERTS{alertname=~"Nereid.*", alertstate="firing"}',
        "hide": False,
        "iconColor": "red",
        "name": "Alerts",
        "step": "60s",
        "tagKeys": "instance,model",
        "titleFormat": "{{alertname}}",
    }


def dashboard():
    return {
        "annotations": {"list": [firing_alerts()]},
        "description": "Nereid inference servers: health, traffic, latency, batching, budgets, memory and caches.",
        "editable": True,
        "fiscalYearStartMonth": 0,
        "graphTooltip": 1,
        "id": None,
        "links": [],
        "panels": layout(),
        "refresh": "30s",
        "schemaVersion": SCHEMA_VERSION,
        "tags": ["nereid", "inference"],
        "templating": {"list": variables()},
        "time": {"from": "now-1h", "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "title": "Nereid",
        "uid": "nereid",
        "version": 1,
    }


def text():
    return json.dumps(dashboard(), indent=2) + "\n"


if __name__ == "__main__":
    path = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "nereid.json"
    path.write_text(text())
