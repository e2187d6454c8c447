# what: CPython's own tests: test_stat test_glob test_shutil test_posix test_mmap test_popen test_wait3 test_wait4 test_pipes test_gzip
# needs: /usr/lib/python3.11/test/test_os.py
# compare: tests
# quick: yes
# limit: 120
exec /usr/bin/python3.11 -m unittest -v test.test_stat test.test_glob test.test_shutil test.test_posix test.test_mmap test.test_popen test.test_wait3 test.test_wait4 test.test_pipes test.test_gzip
