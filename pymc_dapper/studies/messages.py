"""Messages of exceptions: the kind and the place, and no values."""

from pathlib import Path
from traceback import walk_tb

from pymc_dapper.studies.fingerprint import is_installed


class StudyError(Exception):
    """Something that doesn't fit, found by the study itself: the text has no values in it."""


def error_message(where: str, error: BaseException) -> str:
    """Describe an error without values: an exception's text may contain confidential ones.

    A text is kept if it stands as it is in the function that raised it. Instead of another one, the
    line of the user's own code is told.
    """
    text, places = str(error), list(walk_tb(error.__traceback__))
    # The texts of these have shapes at most.
    if text and places and not isinstance(error, StudyError | MemoryError):
        written = [x for x in places[-1][0].f_code.co_consts if isinstance(x, str)]
        if not all(isinstance(x, str) and x in written for x in error.args):
            in_files = [x for x in places if not x[0].f_code.co_filename.startswith("<")]
            own = [x for x in in_files if not is_installed(x[0].f_code)]
            frame, line = (own or places)[-1]
            text = f"line {line} of {Path(frame.f_code.co_filename).name} (its text is left out)"
    kind = "" if isinstance(error, StudyError) else type(error).__name__
    message = ": ".join(part for part in (where, kind, text) if part)
    return message.encode(errors="backslashreplace").decode()
