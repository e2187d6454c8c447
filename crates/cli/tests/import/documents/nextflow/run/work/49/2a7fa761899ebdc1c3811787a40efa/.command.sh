#!/bin/bash -ue
cat in.txt
exit 3
