"""A stand for trying the engine on real parts, beside whatever else runs on the machine.

Owns: a temporary root, a journaled disk, a registry, a network, cgroup parents, our daemon; and the check that nothing
of it is left. Everything that one stand makes bears its mark. Used by bench/, demo/ and the integration tests; may
import nothing of isulad_py.
"""
