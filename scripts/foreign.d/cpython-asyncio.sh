# what: CPython's own tests: test_asyncio
# needs: /usr/lib/python3.11/test/test_os.py
# compare: tests
# limit: 280
timeout $((270 * FOREIGN_PATIENCE)) /usr/bin/python3.11 -m test -v -u none --timeout $((240 * FOREIGN_PATIENCE)) test_asyncio
