import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeSet;
import org.neo4j.configuration.GraphDatabaseSettings;
import org.neo4j.dbms.api.DatabaseManagementService;
import org.neo4j.dbms.api.DatabaseManagementServiceBuilder;
import org.neo4j.graphdb.GraphDatabaseService;

/**
 * Asks a database of Neo4j, which runs in this process.
 *
 * <pre>
 * Cypher HOME IMPORT QUERY [SCRIPT]
 * </pre>
 *
 * In: the server's home and import directories, a query, and a file of statements that run before.
 * Out: the first column of the answer, each value once, with a NUL after it.
 */
public class Cypher {
    public static void main(String[] words) throws Exception {
        DatabaseManagementService server = new DatabaseManagementServiceBuilder(Path.of(words[0]))
                .setConfig(GraphDatabaseSettings.load_csv_file_url_root, Path.of(words[1]))
                .build();
        TreeSet<String> found = new TreeSet<>();
        try {
            GraphDatabaseService database = server.database(GraphDatabaseSettings.DEFAULT_DATABASE_NAME);
            if (words.length > 3) {
                // cypher-shell, too, takes a semicolon at the end of a line for that of a statement.
                for (String statement : Files.readString(Path.of(words[3])).split(";\\R")) {
                    database.executeTransactionally(statement);
                }
            }
            database.executeTransactionally(words[2], Map.of(), rows -> {
                String column = rows.columns().get(0);
                rows.forEachRemaining(row -> found.add(String.valueOf(row.get(column))));
                return null;
            });
        } finally {
            server.shutdown();
        }
        for (String value : found) {
            System.out.write((value + "\0").getBytes(StandardCharsets.UTF_8));
        }
        System.out.flush();
    }
}
