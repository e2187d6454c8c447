# what: java with heaps of many gigabytes reserved, each collector, compressed pointers on and off
# needs: javac
# limit: 120
# of: out in
echo heap >in
cat >H.java <<'J'
import java.nio.file.*; import java.util.*;
public class H { public static void main(String[] a) throws Exception {
    List<byte[]> l = new ArrayList<>(); for (int i = 0; i < 200; i++) { l.add(new byte[200_000]); if (l.size() > 50) l.remove(0); }
    Files.write(Path.of("out"), Files.readAllBytes(Path.of("in"))); System.out.println(l.size()); } }
J
javac H.java || exit 1
for o in "-XX:+UseSerialGC -Xmx24g" "-XX:+UseParallelGC -Xmx31g" "-XX:+UseG1GC -Xmx40g -XX:-UseCompressedOops" "-XX:+UseZGC -Xmx64g" "-XX:+UseShenandoahGC -Xmx48g" "-XX:+UseG1GC -Xmx16g -XX:HeapBaseMinAddress=0x540000000000"; do
    java -XX:TieredStopAtLevel=1 $o H 2>&1 | grep -v '^OpenJDK\|warning'; echo "$o ${PIPESTATUS[0]}"
done
rm -f H.class
