"""The command `presets`."""

from causalformer.cli.options import JsonOption
from causalformer.cli.terminal import show_columns, show_json


def presets(as_json: JsonOption = False) -> None:
    """List the presets and their settings."""
    from causalformer.config import PRESETS, Settings

    if as_json:
        show_json({name: settings.model_dump() for name, settings in PRESETS.items()})
        return
    rows = [
        (field, *(str(getattr(settings, field)) for settings in PRESETS.values()))
        for field in Settings.model_fields
    ]
    show_columns(("setting", *PRESETS), rows)
