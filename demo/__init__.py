"""The main job, shown: one pod from end to end on real parts. `sudo demo/run`.

Owns: what is shown and how it looks. The world it needs comes from tests/stand; nothing of isulad_py is imported,
because a CRI client has nothing but the socket either.
"""
