"""The colour themes, dark and light."""

from textual.theme import Theme

DARK = Theme(
    name="trainwatch",
    primary="#6ea8d8",
    secondary="#b49be0",
    accent="#7cc4d4",
    success="#7fc48a",
    warning="#e6b450",
    error="#f0716a",
    foreground="#c6ccd4",
    background="#12161b",
    surface="#171c22",
    panel="#1c222a",
    dark=True,
    variables={
        "line": "#39434e",
        "title": "#93a1b0",
        "quiet": "#7c8894",
        "bright": "#f2f5f8",
        "spark": "#4b7787",
        "low": "#6ea8d8",
        "trough": "#252d36",
    },
)
LIGHT = Theme(
    name="trainwatch-light",
    primary="#2a6fa8",
    secondary="#6b4fb0",
    accent="#0f7285",
    success="#2c7a3c",
    warning="#946200",
    error="#b8302a",
    foreground="#2a3038",
    background="#fafbfc",
    surface="#f1f3f5",
    panel="#e8ebef",
    dark=False,
    variables={
        "line": "#c3cad2",
        "title": "#55616e",
        "quiet": "#66727e",
        "bright": "#0b0f14",
        "spark": "#3f8096",
        "low": "#2a6fa8",
        "trough": "#dfe4e9",
    },
)
ROLES: dict[str, str] = {
    "line": "#5a5a5a",
    "title": "#a0a0a0",
    "quiet": "#8c8c8c",
    "bright": "#ffffff",
    "spark": "#6f9fb0",
    "low": "#6ea8d8",
    "trough": "#333333",
}
"""Values of our colour variables for Textual's own themes."""
