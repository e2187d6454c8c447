"""From rows to ratios, a subset, a model. Everything statistical is SciPy's and scikit-learn's; nothing here measures or prints figures."""
