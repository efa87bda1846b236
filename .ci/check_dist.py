"""Check what was built: `python .ci/check_dist.py dist`.

The wheel holds the package, its licence and the marker of its types, and nothing else: no tests, no
examples. The source distribution holds what is needed to build and to test it.
"""

import sys
import tarfile
import zipfile
from pathlib import Path


def main(folder):
    """Fail where something is missing, or is there that should not be."""
    [wheel], [source] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    info = {name.split("/")[0] for name in names if ".dist-info/" in name}
    assert len(info) == 1, info
    assert f"{info.pop()}/licenses/LICENSE" in names
    assert {"pymc_dapper/py.typed", "pymc_dapper/__init__.pyi"} <= names
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops == {"pymc_dapper"}, tops
    assert not [name for name in names if "test" in Path(name).name.partition("_")[0]]

    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"LICENSE", "README.md", "CHANGELOG.md", "CITATION.cff", "pyproject.toml", "Makefile"}
    assert wanted <= names, wanted - names
    assert {"pymc_dapper/py.typed", "tests/conftest.py", "examples/admissions.py"} <= names
    assert not [name for name in names if name.endswith((".pyc", ".nbi", ".nbc"))]
    print(f"{wheel.name} ({wheel.stat().st_size:,} bytes), {source.name}: all is there")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
