# what: the helpers of bash's tests, which show arguments as they arrive
./configure -q
make recho zecho printenv xcase
