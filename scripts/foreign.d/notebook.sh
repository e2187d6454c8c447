# what: jupyter nbconvert executes a notebook: a kernel, its sockets, a shell
# needs: jupyter-nbconvert python3
# limit: 120
# of: made.csv n.ipynb
cat >n.ipynb <<'J'
{"cells": [{"cell_type": "code", "metadata": {}, "execution_count": null, "outputs": [], "source": "open('made.csv', 'w').write('1,2'); print(sum(range(10)))"},
 {"cell_type": "code", "metadata": {}, "execution_count": null, "outputs": [], "source": "!echo from a shell"}],
 "metadata": {"kernelspec": {"name": "python3", "display_name": "p", "language": "python"}}, "nbformat": 4, "nbformat_minor": 4}
J
jupyter-nbconvert --to notebook --execute n.ipynb --output o.ipynb 2>/dev/null || exit 1
python3 -c "import json; [print(o.get('text')) for c in json.load(open('o.ipynb'))['cells'] for o in c['outputs']]"; rm -f o.ipynb
