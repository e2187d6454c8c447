# what: a virtual environment, a wheel built and installed into it without a network
# needs: python3 /usr/lib/python3.11/venv
# limit: 120
# of: said project/mod.py
set -e
mkdir project && cat >project/mod.py <<'PY'
def main():
    print("hello from a wheel")
PY
/usr/bin/python3 - <<'PY'
import zipfile
with zipfile.ZipFile("mod-1-py3-none-any.whl", "w") as z:
    z.writestr(zipfile.ZipInfo("mod.py"), open("project/mod.py").read())
    z.writestr(zipfile.ZipInfo("mod-1.dist-info/METADATA"), "Metadata-Version: 2.1\nName: mod\nVersion: 1\n")
    z.writestr(zipfile.ZipInfo("mod-1.dist-info/WHEEL"), "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
    z.writestr(zipfile.ZipInfo("mod-1.dist-info/entry_points.txt"), "[console_scripts]\nmod = mod:main\n")
    z.writestr(zipfile.ZipInfo("mod-1.dist-info/RECORD"), "mod.py,,\nmod-1.dist-info/METADATA,,\nmod-1.dist-info/WHEEL,,\nmod-1.dist-info/entry_points.txt,,\nmod-1.dist-info/RECORD,,\n")
PY
/usr/bin/python3 -m venv env
env/bin/pip install -q --no-index --disable-pip-version-check ./mod-1-py3-none-any.whl 2>&1
env/bin/mod | tee said
find env -name '*.pyc' -delete
