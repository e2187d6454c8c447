# what: java: javac, jar, threads, processes, mapped files
# needs: javac
# limit: 120
# of: out.txt in.txt
set -e
mkdir -p src/p classes; echo some input >in.txt
cat >src/p/Main.java <<'J'
package p;
import java.io.*; import java.nio.*; import java.nio.channels.*; import java.nio.file.*; import java.util.*; import java.util.concurrent.*;
public class Main {
  public static void main(String[] a) throws Exception {
    Files.copy(Path.of("in.txt"), Path.of("out.txt"), StandardCopyOption.REPLACE_EXISTING);
    ExecutorService pool = Executors.newFixedThreadPool(16); List<Future<Integer>> all = new ArrayList<>();
    for (int i = 0; i < 64; i++) { int n = i; all.add(pool.submit(() -> { Path p = Path.of("t" + n); Files.writeString(p, "x".repeat(n)); return Files.readString(p).length(); })); }
    int sum = 0; for (Future<Integer> f : all) sum += f.get(); pool.shutdown(); System.out.println(sum);
    Process p = new ProcessBuilder("sh", "-c", "cat in.txt; exit 3").redirectErrorStream(true).start();
    System.out.print(new String(p.getInputStream().readAllBytes())); System.out.println(p.waitFor());
    try (RandomAccessFile f = new RandomAccessFile("map", "rw")) { MappedByteBuffer m = f.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 65536); for (int i = 0; i < 65536; i += 4096) m.put(i, (byte) 65); m.force(); }
    try { Files.readString(Path.of("missing")); } catch (NoSuchFileException e) { System.out.println("missing: " + e.getMessage()); }
    try (var s = Files.walk(Path.of("."))) { System.out.println(s.count() > 64); }
    System.exit(7);
  }
}
J
javac -d classes src/p/Main.java
jar --create --date=2020-01-01T00:00:00Z --file m.jar --main-class p.Main -C classes . && jar tf m.jar
for gc in Serial Parallel G1; do java -XX:+Use${gc}GC -jar m.jar || echo $?; done
