#!/bin/bash -ue
wc -l loud.txt > lines.count
