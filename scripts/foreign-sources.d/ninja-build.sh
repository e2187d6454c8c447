# what: ninja and its own tests
cmake -S . -B built -DCMAKE_BUILD_TYPE=None
cmake --build built --target ninja ninja_test -j2
