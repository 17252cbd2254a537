from __future__ import annotations

from isulad_py.model.edits import EditMount, Edits
from isulad_py.spec import injection
from isulad_py.spec.schema import Mount


def test_variables_are_replaced_at_their_place() -> None:
    edits = Edits(env=("B=new=1", "C=3"))
    assert injection.environment(("A=1", "B=2", "D=4"), edits) == ("A=1", "B=new=1", "D=4", "C=3")


def test_groups_are_added_once_and_never_root() -> None:
    assert injection.groups((1, 2), Edits(additional_gids=(2, 0, 3, 3))) == (1, 2, 3)


def test_mounts() -> None:
    mount = EditMount(destination="/d", source="/s", type="bind", options=("ro",))
    assert injection.mounts([mount]) == [Mount(destination="/d", source="/s", type="bind", options=("ro",))]
