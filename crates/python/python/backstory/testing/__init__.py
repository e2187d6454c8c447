"""The inputs of tests, for the pytest plug-in.

A test depends on:

- the functions of the project that ran in it, by the syntax tree of their bodies;
- the rest of each module of the project that was loaded: constants, classes, signatures;
- the files that it read, listed, or looked for in vain, and those that its child processes used, as
  backstory recorded them;
- what was executed and read before the first test;
- Python and the installed distributions.

A test is selected if one of these changed, if it failed, or if it is new. Environment variables and
what is behind a network are not compared.
"""
