"""What a comparison calls its sides.  Pure."""

from string import ascii_uppercase


def side_letter(place: int) -> str:
    """Return A, B, ... Z, AA, AB, ...: what a comparison calls its sides."""
    text = ""
    number = place + 1
    while number:
        number, rest = divmod(number - 1, len(ascii_uppercase))
        text = ascii_uppercase[rest] + text
    return text
