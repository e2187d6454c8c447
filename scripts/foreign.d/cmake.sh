# what: cmake and ninja build a library and a program, ctest runs it
# needs: cmake ninja gcc
# limit: 120
# of: result one.c
cat >CMakeLists.txt <<'C'
cmake_minimum_required(VERSION 3.10)
project(t C)
enable_testing()
add_library(one SHARED one.c)
foreach(n RANGE 1 12)
  file(WRITE ${CMAKE_BINARY_DIR}/f${n}.c "int f${n}(void) { return ${n}; }\n")
  list(APPEND more ${CMAKE_BINARY_DIR}/f${n}.c)
endforeach()
add_executable(two two.c ${more})
target_link_libraries(two one)
add_test(NAME runs COMMAND two)
C
echo 'int one(void) { return 1; }' >one.c
echo '#include <stdio.h>
int one(void); int f12(void); int main(void) { printf("%d\n", one() + f12()); return 0; }' >two.c
cmake -G Ninja -B b -DCMAKE_BUILD_TYPE=Release . | sort && ninja -C b -j4 | grep -v '^\[' ; ./b/two | tee result; (cd b && ctest | grep -v Total)
rm -rf b
