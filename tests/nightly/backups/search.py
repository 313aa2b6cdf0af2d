"""Looks for bytes in the files of a folder: as they are, as hexadecimal digits, and in base64."""

import base64


def forms(value):
    """The ways in which these bytes may be written."""
    return {value, value.hex().encode(), value.hex().upper().encode(), base64.b64encode(value).rstrip(b"=")}


def files_with(folder, values):
    """The paths of the files that contain one of these values, relative to the folder."""
    wanted = [form for value in values for form in forms(value)]
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            if any(form in content for form in wanted):
                yield str(path.relative_to(folder))
