tr a-z A-Z < in > upper; sort upper -o sorted; cp sorted copy; cat sorted copy | head -3 > both; mkdir d; cd d; mv ../copy 'a b'; ln -s 'a b' l; cat l ../both > ../all; rm ../upper; (exit 3)
