# from: registry
# what: Apache Commons IO with its tests from Maven Central, and the artefacts that Maven needs to build it without a network
maven="mvn -q -B -Dmaven.repo.local=$PWD/repository"
copy=org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy
for kind in sources test-sources; do
    $maven $copy -Dartifact=commons-io:commons-io:2.11.0:jar:$kind -DoutputDirectory=jars
done
mkdir -p project/src/main/java project/src/test/java project/src/test/resources
unzip -qo jars/commons-io-2.11.0-sources.jar 'org/*' -d project/src/main/java
unzip -qo jars/commons-io-2.11.0-test-sources.jar -d project/src/test/java
cat >project/pom.xml <<'P'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>foreign</groupId>
  <artifactId>commons-io</artifactId>
  <version>1</version>
  <properties>
    <maven.compiler.source>8</maven.compiler.source>
    <maven.compiler.target>8</maven.compiler.target>
    <project.build.sourceEncoding>UTF-8</project.build.sourceEncoding>
  </properties>
  <dependencies>
    <dependency><groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>5.7.2</version></dependency>
    <dependency><groupId>org.junit-pioneer</groupId><artifactId>junit-pioneer</artifactId><version>1.4.2</version></dependency>
    <dependency><groupId>org.mockito</groupId><artifactId>mockito-inline</artifactId><version>4.11.0</version></dependency>
    <dependency><groupId>com.google.jimfs</groupId><artifactId>jimfs</artifactId><version>1.2</version></dependency>
    <dependency><groupId>org.apache.commons</groupId><artifactId>commons-lang3</artifactId><version>3.12.0</version></dependency>
    <dependency><groupId>org.openjdk.jmh</groupId><artifactId>jmh-core</artifactId><version>1.32</version></dependency>
  </dependencies>
  <build><plugins>
    <plugin><artifactId>maven-resources-plugin</artifactId><version>3.3.1</version></plugin>
    <plugin><artifactId>maven-compiler-plugin</artifactId><version>3.11.0</version></plugin>
    <plugin><artifactId>maven-surefire-plugin</artifactId><version>3.1.2</version></plugin>
  </plugins></build>
</project>
P
# One test runs here, so that Maven fetches the parts that it needs only to run tests.
cd project
$maven test -Dtest=FilenameUtilsTestCase
rm -rf target
