"""Charts that move, drawn by ECharts: options in colours that can be read on light and dark paper alike."""

from __future__ import annotations

from typing import Any

INK, RULE = "#7f8894", "rgba(127, 136, 148, 0.28)"
COLOURS = ("#3b82d6", "#e0703a", "#1fa37f", "#9a6ae0", "#b8912a", "#d9559a", "#4aa5b8", "#8a8f98")


def chart_options(x_name: str, y_name: str, *, legend: bool = True) -> dict[str, Any]:
    """A chart of lines without lines; give it `series` later, by `setOption`."""
    axis = {
        "type": "value",
        "nameLocation": "middle",
        "nameTextStyle": {"color": INK},
        "axisLabel": {"color": INK, "hideOverlap": True},
        "axisLine": {"lineStyle": {"color": RULE}},
        "splitLine": {"lineStyle": {"color": RULE}},
    }
    return {
        "animation": False,
        "color": list(COLOURS),
        "backgroundColor": "transparent",
        "textStyle": {"fontFamily": "system-ui, sans-serif"},
        "grid": {"left": 58, "right": 18, "top": 34 if legend else 14, "bottom": 46},
        "tooltip": {"trigger": "axis", "confine": True},
        "legend": {"show": legend, "textStyle": {"color": INK}, "type": "scroll", "top": 0},
        "xAxis": {**axis, "name": x_name, "nameGap": 28, "splitLine": {"show": False}, "min": 0, "max": "dataMax"},
        "yAxis": {**axis, "name": y_name, "nameGap": 42, "scale": True},
        "series": [],
    }


def line(name: str, points: list[list[float]], number: int, *, faint: bool = False) -> dict[str, Any]:
    """One curve in the colour of its number."""
    return {
        "id": name,
        "name": name,
        "type": "line",
        "showSymbol": not faint and len(points) < 60,
        "symbolSize": 5,
        "data": points,
        "color": COLOURS[number % len(COLOURS)],
        "lineStyle": {"width": 1.2 if faint else 2.4, "opacity": 0.55 if faint else 1.0},
    }
