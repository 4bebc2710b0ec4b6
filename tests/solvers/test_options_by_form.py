"""The table of options by form in the reference, compared with runs cell by cell."""

import pathlib

import jax
import numpy as np
import pytest
from open_spiel.python.policy import UniformRandomPolicy

import spiel_cr
from spiel_cr.eval.cli import main
from spiel_cr.games.opening.opened import load_game
from spiel_cr.solvers.representation import FORMS, GameOptions

PAGE = pathlib.Path(__file__).parents[2] / "docs/reference/command-line.md"
# For each form, a small game that has it, and an algorithm.
GAMES = {
    "tree": ("kuhn_poker", "cfr+"),
    "public-tree": ("liars_dice(numdice=1,dice_sides=2)", "cfr+"),
    "phantom": ("dark_hex(board_size=2)", "cfr+"),
    "simulator": ("kuhn_poker", "os-mccfr(batch=64)"),
}
# The same algorithms with settings that no other test uses, so that no function that an
# earlier test compiled is reused.
UNUSED = dict.fromkeys(("tree", "public-tree", "phantom"), "cfr+(gamma=2.71875)")
UNUSED |= {"simulator": "os-mccfr(batch=67)"}
LIMIT_HOLDEM = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=2 1,raiseSize=2 4,"
    "firstPlayer=2 1,maxRaises=1 1,numSuits=4,numRanks=13,numHoleCards=2,"
    "numBoardCards=0 3)"
)


def table():
    """Return the cells of the page by form and column."""
    section = PAGE.read_text("utf-8").partition("## Options by form")[2]
    rows = [
        [cell.strip().strip("`") for cell in line.strip("|").split("|")]
        for line in section.partition("\n- ")[0].splitlines()
        if line.startswith("|")
    ]
    head, _, *lines = rows
    return {
        (line[0], name): cell
        for line in lines
        for name, cell in zip(head, line, strict=True)
    }


CELLS = {key: cell for key, cell in table().items() if key[1] != "form"}


def run(form, algorithm=None, checkpoint=None, dtype=None, **options):
    game, usual = GAMES[form]
    return spiel_cr.solve(
        game,
        algorithm or usual,
        2,
        options=GameOptions(form, memory_limit="4GB", **options),
        checkpoint=checkpoint,
        dtype=dtype,
    )


def compiles(form, algorithm=None):
    """Return whether JAX compiles iterations, so that they can run on its device."""
    names = []

    def listen(event, *_, **more):
        if event.endswith("backend_compile_duration"):
            names.append(more.get("fun_name", ""))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        run(form, algorithm)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    return bool(names)


def check_workers(form, tmp_path):
    run(form, workers=2, **({"batched_rules": False} if form == "simulator" else {}))


def check_ray(form, tmp_path):
    words = ["solve", "--game", GAMES[form][0], "--form", form, "--ray"]
    surplus = main.make_parser().parse_known_args(words)[1]
    if surplus:
        raise ValueError(surplus)


def check_checkpoint(form, tmp_path):
    run(form, checkpoint=tmp_path / "run.npz")
    assert (tmp_path / "run.npz").exists()


def check_dtype(form, tmp_path):
    result = run(form, dtype="float32")
    assert result.iterations == 2


def check_lock(form, tmp_path):
    locks = (UniformRandomPolicy(load_game(GAMES[form][0])), None)
    assert run(form, locks=locks).locked_infosets()[0] > 0


def check_buckets(form, tmp_path):
    first, second = run(form).form.decisions if form != "simulator" else (None, None)
    count = 1 if first is None else len(first.num_actions)
    run(form, buckets=(np.arange(count), None))


CHECKS = {
    "--workers": check_workers,
    "--ray": check_ray,
    "--checkpoint": check_checkpoint,
    "--dtype": check_dtype,
    "--lock": check_lock,
    "buckets": check_buckets,
}


def test_table_has_all_forms_and_options():
    assert {form for form, _ in CELLS} == set(FORMS) - {"auto"} == set(GAMES)
    assert {name for _, name in CELLS} == {*CHECKS, "GPU"}


@pytest.mark.parametrize(("form", "name"), CELLS)
def test_cell_of_the_table_agrees_with_a_run(form, name, tmp_path):
    cell = CELLS[form, name]
    if name == "GPU":
        assert compiles(form, UNUSED[form]) == (cell == "yes")
        assert cell != "networks" or compiles(form, "mmd(hidden=7)")
    elif cell == "yes":
        CHECKS[name](form, tmp_path)
    else:
        with pytest.raises(ValueError, match=f"{name.strip('-')}|information state"):
            CHECKS[name](form, tmp_path)
    if cell == "hand buckets":
        options = GameOptions(hand_buckets="4-4", memory_limit="4GB")
        task = spiel_cr.solvers.solve.task_of("pcs", 2, options=options)
        assert "simulator" not in task.need().rejected
