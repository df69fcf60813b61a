"""A module that cannot be imported."""

import no_such_package_anywhere


def wheel() -> int:
    """Turn the wheel."""
    return no_such_package_anywhere.turn()
