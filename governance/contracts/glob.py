"""Names with `*` (any run of characters) and `?` (any one character); nothing else is special.

Not fnmatch: its brackets would give a meaning to characters that occur in activity names, and on
some systems it ignores case.
"""

from __future__ import annotations


def is_glob(pattern: str) -> bool:
    """Tell whether a pattern can match more than the name it spells."""
    return "*" in pattern or "?" in pattern


def matches(pattern: str, name: str) -> bool:
    """Tell whether the whole name fits the pattern; upper and lower case differ.

    Takes time proportional to the two lengths multiplied at worst, whatever the pattern.
    """
    at = in_pattern = 0
    star: int | None = None
    resume_at = 0
    while at < len(name):
        here = pattern[in_pattern] if in_pattern < len(pattern) else None
        if here == "*":
            star, resume_at = in_pattern, at
            in_pattern += 1
        elif here is not None and here in ("?", name[at]):
            at += 1
            in_pattern += 1
        elif star is not None:
            # The last star takes one character more; earlier stars never need another look.
            resume_at += 1
            at, in_pattern = resume_at, star + 1
        else:
            return False
    return all(character == "*" for character in pattern[in_pattern:])


def covers(earlier: str, later: str) -> bool:
    """Tell whether `earlier` certainly matches every name that `later` matches.

    Sound, not complete: True is certain, False is not a proof of the opposite.
    """
    if earlier == later:
        return True
    if is_glob(later):
        return set(earlier) == {"*"}
    return matches(earlier, later)
