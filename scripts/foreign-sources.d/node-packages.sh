# from: registry
# what: packages of the npm registry that bring their tests: tar-fs (archives of trees), resolve (Node's way to find modules), tape (runs tests)
for package in tar-fs@2.1.1 resolve@1.22.8 tape@5.9.0; do
    name=${package%@*}
    rm -rf "$name"
    tar xzf "$(npm pack --silent "$package")"
    mv package "$name"
done
# The packages that their tests need, without the linters in their package.json.
printf '{"private": true}\n' >package.json
npm install --silent --no-package-lock --ignore-scripts tar-fs@2.1.1 resolve@1.22.8 tape@5.9.0 rimraf@2.7.1 tap@15 concat-stream@1.6.2 \
    array.prototype.flatmap@1.3.2 js-yaml@3.14.1 copy-dir@1.3.0 mv@2.1.1 mkdirp@0.5.6 semver@6.3.1 object-keys@1.1.1 array.prototype.map@1.0.7 tmp@0.0.31
