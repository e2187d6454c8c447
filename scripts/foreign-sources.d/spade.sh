# from: repository
# what: SPADE from its own repository (no registry has it), and from Maven Central the libraries that its build takes from Neo4j's archive
repository=${SPADE_REPOSITORY:-https://github.com/ashish-gehani/SPADE}
commit=3859bbde8db6c0b985dde11dfb32fd43938d3a10
rm -rf tree classes
git clone -q --filter=blob:none --no-checkout "$repository" tree
# Two libraries of 60 MB are for Kafka only.
libraries=$(git -C tree ls-tree --name-only $commit lib/ | grep -v -e avro-tools -e kafkaclients)
# shellcheck disable=SC2086
git -C tree checkout -q $commit -- src cfg test $libraries
for library in commons-collections:commons-collections:3.2.2 org.apache.commons:commons-math3:3.6.1 jline:jline:0.9.94 \
    org.codehaus.jackson:jackson-core-asl:1.9.13; do
    mvn -q -B -Dmaven.repo.local="$PWD/repository" org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy \
        -Dartifact=$library -DoutputDirectory="$PWD/tree/lib"
done
cd tree
mkdir ../classes
javac -Xlint:none -proc:none -nowarn -cp 'lib/*' -sourcepath src -d ../classes \
    src/spade/reporter/DSL.java src/spade/reporter/Graphviz.java src/spade/reporter/JSON.java src/spade/core/Graph.java \
    src/spade/query/quickgrail/parser/DSLParserWrapper.java
