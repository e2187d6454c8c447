# what: npm packs a local package and installs it into another
# needs: npm node
# limit: 90
# of: said pkg/index.js
mkdir pkg app; echo '{"name":"pkg","version":"1.0.0","bin":{"pkg":"index.js"},"scripts":{"postinstall":"node -e 0"}}' >pkg/package.json
printf '#!/usr/bin/env node\nconsole.log("from a package")\n' >pkg/index.js; chmod +x pkg/index.js; echo '{"name":"app","version":"1.0.0"}' >app/package.json
npm_config_update_notifier=false; export npm_config_update_notifier
(cd pkg && npm pack --silent) && (cd app && npm install --offline --no-audit --no-fund --silent ../pkg/pkg-1.0.0.tgz; echo $?; npx --offline pkg) | tee said
