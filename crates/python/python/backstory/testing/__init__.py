"""The inputs of tests, for the pytest plug-in.

A test depends on:

- the project's functions that ran during the test, by the syntax tree of their bodies;
- the rest of each loaded module of the project: constants, classes, signatures;
- the files that the test and its child processes read, listed, or looked for in vain, as recorded
  by backstory;
- the functions and files that were used before the first test;
- Python and the installed distributions.

A test is selected if one of these changed, if it failed, or if it is new. Environment variables and
the state of network peers are not compared.
"""
