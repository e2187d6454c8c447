# from: registry
# what: Neo4j Community 5.26 from Maven Central: the libraries with which tests load an export
# The list has those that the tests use, and their digests.
list=$(dirname "$0")/neo4j.sha256
rm -rf all lib repository
cat >pom.xml <<'POM'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>backstory</groupId>
  <artifactId>neo4j-of-tests</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.neo4j</groupId>
      <artifactId>neo4j</artifactId>
      <version>5.26.0</version>
    </dependency>
  </dependencies>
</project>
POM
mvn -q -B -Dmaven.repo.local="$PWD/repository" -DoutputDirectory="$PWD/all" \
    org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies
(cd all && sha256sum --quiet --strict -c "$list")
mkdir lib
while read -r _ jar; do
    mv "all/$jar" lib/
done <"$list"
rm -r all repository
