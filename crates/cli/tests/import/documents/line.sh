tr a-z A-Z < in > upper; sort upper -o sorted; cp sorted copy; cat sorted copy > both; (exit 3)
