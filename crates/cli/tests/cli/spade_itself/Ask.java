import java.io.FileOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.json.JSONObject;
import spade.core.AbstractEdge;
import spade.core.AbstractVertex;
import spade.core.Buffer;
import spade.core.Graph;
import spade.query.quickgrail.instruction.GetLineage.Direction;
import spade.query.quickgrail.parser.DSLParserWrapper;
import spade.reporter.DSL;

/**
 * Asks SPADE's own code about documents of backstory. In: the words of a question. Out: a line for
 * each vertex and edge, as JSON; or for each statement, whether SPADE's grammar has it.
 *
 * <pre>
 * dsl FILE PIPE                            the graph that SPADE's reporter makes of its language
 * dot FILE, json FILE                      the graph of an exported one
 * lineage FILE PIPE KEY VALUE DEPTH WORD   its ancestors or descendants, of vertices with a value
 * parse FILE                               each line of the file, a statement
 * </pre>
 */
public class Ask {
    private static volatile boolean warned;

    public static void main(String[] words) throws Exception {
        Logger.getLogger("").addHandler(new Handler() {
            @Override
            public void publish(LogRecord line) {
                warned |= line.getLevel().intValue() >= Level.WARNING.intValue();
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        });
        switch (words[0]) {
            case "dsl" -> print(reported(words[1], words[2]));
            case "dot" -> print(Graph.importGraphFromDOTFile(words[1], true));
            case "json" -> print(Graph.importGraphFromJSONFile(words[1]));
            case "lineage" -> print(lineage(reported(words[1], words[2]), words));
            case "parse" -> parse(words[1]);
            default -> throw new IllegalArgumentException(words[0]);
        }
        // The reporter's thread may still wait.
        System.out.flush();
        Runtime.getRuntime().halt(warned ? 4 : 0);
    }

    /** The graph of SPADE's reporter after a program has written the document into its pipe. */
    private static Graph reported(String file, String pipe) throws Exception {
        DSL reporter = new DSL();
        Buffer buffer = new Buffer();
        reporter.setBuffer(buffer);
        if (!reporter.launch(pipe)) throw new IllegalStateException("no pipe");
        long left;
        try (FileOutputStream out = new FileOutputStream(pipe)) {
            byte[] document = Files.readAllBytes(Path.of(file));
            left = Files.readAllLines(Path.of(file)).size();
            out.write(document);
        }
        Graph graph = new Graph();
        while (left > 0 && !warned) {
            Object one = buffer.getBufferElement();
            if (one instanceof AbstractVertex vertex) graph.putVertex(vertex);
            else if (one instanceof AbstractEdge edge) graph.putEdge(edge);
            else {
                Thread.sleep(5);
                continue;
            }
            left--;
        }
        reporter.shutdown();
        return graph;
    }

    private static Graph lineage(Graph graph, String[] words) {
        Set<AbstractVertex> start = new HashSet<>();
        for (AbstractVertex vertex : graph.vertexSet()) {
            if (words[4].equals(vertex.getAnnotation(words[3]))) start.add(vertex);
        }
        Direction direction = words[6].equals("ancestors") ? Direction.kAncestor : Direction.kDescendant;
        Graph found = graph.getLineage(start, direction, Integer.parseInt(words[5]));
        // The vertices of an edge have no annotations: those of the graph do.
        Set<String> hashes = new HashSet<>();
        for (AbstractVertex vertex : found.vertexSet()) hashes.add(vertex.bigHashCode());
        Graph whole = new Graph();
        for (AbstractVertex vertex : graph.vertexSet()) {
            if (hashes.contains(vertex.bigHashCode())) whole.putVertex(vertex);
        }
        for (AbstractEdge edge : found.edgeSet()) whole.putEdge(edge);
        return whole;
    }

    private static void print(Graph graph) {
        for (AbstractVertex vertex : graph.vertexSet()) {
            line(Map.of("hash", vertex.bigHashCode()), vertex.getCopyOfAnnotations());
        }
        for (AbstractEdge edge : graph.edgeSet()) {
            String from = edge.getChildVertex().bigHashCode();
            String to = edge.getParentVertex().bigHashCode();
            Map<String, String> ends = Map.of("from", from, "to", to, "edge", edge.bigHashCode());
            line(ends, edge.getCopyOfAnnotations());
        }
    }

    private static void line(Map<String, String> ends, Map<String, String> annotations) {
        Map<String, Object> all = new TreeMap<>(ends);
        all.put("annotations", new JSONObject(annotations));
        System.out.println(new JSONObject(all));
    }

    private static void parse(String file) throws Exception {
        for (String statement : Files.readAllLines(Path.of(file))) {
            try {
                new DSLParserWrapper().fromText(statement);
                System.out.println("accepted");
            } catch (RuntimeException error) {
                System.out.println("refused");
            }
        }
    }
}
