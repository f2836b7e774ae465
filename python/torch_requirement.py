"""Tells the build backend what the wheel depends on: the torch that it is built with, as no other has its C++ interface, and `others`."""

from importlib.metadata import PackageNotFoundError, version


def dynamic_metadata(settings, project):
    try:
        release = version("torch").split(".")[:2]
    except PackageNotFoundError:
        raise SystemExit("torch is not in the Python that builds decodelab: run tools/bootstrap and build with .venv's Python, or leave "
                         "--no-build-isolation away") from None
    return {"dependencies": [f"torch=={'.'.join(release)}.*", *settings["others"]]}


def dynamic_wheel(settings):
    """A wheel that is made of the same sources elsewhere may depend on another torch."""
    return {"dependencies": True}
