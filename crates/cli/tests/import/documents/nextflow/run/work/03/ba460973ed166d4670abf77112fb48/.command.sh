#!/bin/bash -ue
tr a-z A-Z < in.txt > loud.txt
