"""The wheel in a new environment, next to a user's files called `eval`."""

import os
import pathlib
import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[2]

# Home page in the metadata of the wheel.
HOME = "https://example.org/someone/spiel_cr"

# Content of files that a user may have in the working folder.
HOSTILE = "raise RuntimeError('the eval of a user was imported')\n"


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> pathlib.Path:
    """Copy the sources, so that build folders of this checkout are not in the wheel."""
    source = tmp_path_factory.mktemp("copy") / "source"
    files = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    ).stdout.decode()
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    return source


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory) -> pathlib.Path:
    """Build the wheel with a home page, as for a package index."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    build += ["--no-build-isolation", "--wheel-dir", str(folder), str(source)]
    subprocess.run(build, check=True, env={**os.environ, "SPIEL_CR_HOME": HOME})
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory) -> pathlib.Path:
    """Create an environment with the wheel, and with dependencies of this one.

    Lines of a .pth file add folders without their .pth files, so the editable install
    of this checkout is not visible.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    found = subprocess.run([python, "-c", code], check=True, capture_output=True)
    packages = pathlib.Path(found.stdout.decode().strip())
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    subprocess.run([*install, "--target", str(packages), str(wheel)], check=True)
    paths = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    paths |= {path for path in sys.path if path.endswith("site-packages")}
    (packages / "dependencies.pth").write_text("\n".join(sorted(paths)) + "\n")
    return folder


@pytest.fixture
def workplace(tmp_path) -> pathlib.Path:
    """Create a user's folder with a module and a package called `eval`."""
    (tmp_path / "eval.py").write_text(HOSTILE)
    (tmp_path / "eval").mkdir()
    (tmp_path / "eval" / "__init__.py").write_text(HOSTILE)
    return tmp_path


def test_wheel_installs_two_packages_with_their_data(wheel):
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {n for n in names if ".dist-info" not in n} == {"spiel_cr", "game_defs"}
    inside = zipfile.ZipFile(wheel).namelist()
    assert "spiel_cr/eval/cli/main.py" in inside
    assert "game_defs/py.typed" in inside and "spiel_cr/py.typed" in inside
    # The list of public names.
    assert "spiel_cr/__init__.pyi" in inside
    assert any(name.startswith("game_defs/maps/") for name in inside)
    for page in ("inspection/tree_page.js", "reporting/html_page.css"):
        assert f"spiel_cr/eval/{page}" in inside


def test_links_for_a_package_index_are_absolute(wheel):
    """They lead to existing files."""
    inside = zipfile.ZipFile(wheel)
    (name,) = (n for n in inside.namelist() if n.endswith("/METADATA"))
    metadata = inside.read(name).decode()
    assert f"Project-URL: Source, {HOME}" in metadata
    links = re.findall(r"\]\(([^)\s]+)\)", metadata)
    assert all(link.startswith("https://") for link in links)
    ours = [link for link in links if link.startswith(HOME)]
    assert len(ours) > 20 and any(link.startswith(f"{HOME}/raw/") for link in ours)
    for link in ours:
        path = re.sub(f"^{HOME}/(blob|raw)/main/", "", link).split("#")[0]
        assert (ROOT / path).exists(), link


def test_links_stay_relative_without_a_home_page(source, tmp_path):
    unset = {k: v for k, v in os.environ.items() if k != "SPIEL_CR_HOME"}
    code = [sys.executable, "setup.py", "--quiet", "egg_info", "--egg-base"]
    subprocess.run([*code, str(tmp_path)], cwd=source, check=True, env=unset)
    metadata = (tmp_path / "spiel_cr.egg-info" / "PKG-INFO").read_text("utf-8")
    assert "Project-URL" not in metadata and "](docs/" in metadata


def test_command_line_ignores_a_users_eval(environment, workplace):
    code = "from spiel_cr.eval.cli import main; main.main()"
    words = ["info", "--game", "python_rock_paper_scissors(num_actions=5)"]
    found = subprocess.run(
        [environment / "bin" / "python", "-c", code, *words],
        cwd=workplace,
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    assert "histories" in found.stdout


def test_scripts_next_to_a_users_eval_work(environment, workplace):
    """`import eval` still imports the module of the user."""
    (workplace / "eval.py").write_text("MINE = True\n")
    (workplace / "eval" / "__init__.py").unlink()
    (workplace / "eval").rmdir()
    script = workplace / "script.py"
    script.write_text(
        "import eval\n"
        "import spiel_cr\n"
        "import spiel_cr.eval.tournaments\n"
        "assert eval.MINE\n"
        "assert 'environment' in spiel_cr.__file__, spiel_cr.__file__\n"
        "assert 'environment' in spiel_cr.eval.__file__, spiel_cr.eval.__file__\n"
        "print(spiel_cr.solve('kuhn_poker', 'cfr+', 10).iterations)\n"
    )
    found = subprocess.run(
        [environment / "bin" / "python", script], capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.split() == ["10"]


def test_installed_command_prints_its_version(environment, workplace):
    """The entry point of `spiel-cr` is called outside the checkout."""
    script = workplace / "script.py"
    script.write_text(
        "import importlib.metadata, sys\n"
        "import game_defs, spiel_cr\n"
        "for package in (game_defs, spiel_cr):\n"
        "    assert 'environment' in package.__file__, package.__file__\n"
        "points = importlib.metadata.entry_points(group='console_scripts')\n"
        "sys.argv = ['spiel-cr', '--version']\n"
        "points['spiel-cr'].load()()\n"
    )
    command = [environment / "bin" / "python", script]
    found = subprocess.run(command, cwd=workplace, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert found.stdout == f"spiel-cr {project['version']}\n"
