mkdir d; mv in d/moved; ln d/moved linked; tr a-z A-Z < linked > out; rm linked; cd d; cat moved > ../last; cat nothing; /nowhere/x
