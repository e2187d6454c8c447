# what: libuv's tests, one program
cmake -S . -B built -DBUILD_TESTING=ON
cmake --build built --target uv_run_tests -j2
