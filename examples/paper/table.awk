# A LaTeX table of the rivers, with the width of a basin: its area divided by the length.
BEGIN { print "\\begin{tabular}{lrr}" }
NR > 1 { printf "%s & %d & %.0f \\\\\n", $1, $2, $3 / $2 }
END { print "\\end{tabular}" }
