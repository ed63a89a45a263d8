"""A fuzzer for every file format that nfgnn reads and every command of its command line.

A *sample* is a valid input: a graph in one of the formats, a run folder, a store, a database. A
*case* copies a sample, changes one file of it by a *mutation*, and runs a command or a function on
the copy in a forked process with bounded time and memory. The *outcome* says what happened. All
choices of a case derive from its id, ``SEED-NUMBER``, so that ``python -m tests.fuzz --case ID``
repeats it.

| module | content |
|---|---|
| `place` | the folders of one case |
| `samples` | valid inputs, written once per campaign |
| `hostile_values` | numbers, texts and names that programs handle badly |
| `byte_mutations`, `path_mutations` | damage to any file, and files replaced by something else |
| `text_mutations`, `array_mutations` | well-formed files with hostile content |
| `mutate` | the choice of a mutation that fits a file |
| `seals` | checksums that are written anew, or removed, after a mutation |
| `requests` | hostile requests to the server, and what must hold of its answers |
| `actions` | what a case does with its input |
| `oracles` | what must hold if an input is accepted |
| `targets` | the pairs of a format and a command |
| `process` | one case in a forked process |
| `outcomes` | the outcome classes, and which of them are bugs |
| `campaign` | many cases, and their summary |
"""
