# what: Maven compiles Apache Commons IO and runs its tests
# needs: mvn javac python3
# source: commons-io/.made
# compare: tests
# limit: 290
cp -a "$FOREIGN_SOURCES"/commons-io/project . && cd project || exit
mvn -o -q -B -Dmaven.repo.local="$FOREIGN_SOURCES"/commons-io/repository -Dmaven.test.failure.ignore=true test >"$HOME/maven.log" 2>&1
[ $? = 0 ] && echo "RESULT maven: ok" || echo "RESULT maven: failed"
python3 - <<'P'
import pathlib
import xml.etree.ElementTree as tree
for report in sorted(pathlib.Path("target/surefire-reports").glob("TEST-*.xml")):
    for test in tree.parse(report).getroot().iter("testcase"):
        bad = [child.tag for child in test if child.tag in ("failure", "error", "skipped")]
        name = "".join(c if c.isprintable() else "?" for c in test.get("name")).replace(": ", "; ")
        print(f"RESULT {test.get('classname')}.{name}: {bad[0] if bad else 'ok'}")
P
