# what: node: files, child processes, worker threads, pipes, a server and a client of its own
# needs: node
# quick: yes
# of: copy input
echo input >input
cat >a.js <<'JS'
const fs = require('fs'), cp = require('child_process'), { Worker } = require('worker_threads'), net = require('net');
fs.copyFileSync('input', 'copy');
fs.mkdirSync('d/e/f', { recursive: true });
fs.writeFileSync('d/e/f/x', fs.readFileSync('input'));
(async () => {
  await fs.promises.rename('d/e/f/x', 'd/e/y');
  for (let i = 0; i < 200; i++) await fs.promises.writeFile(`d/${i}`, `${i}`);
  console.log((await fs.promises.readdir('d')).length, fs.existsSync('nothing'));
  console.log(cp.execSync('echo shell; cat input').toString(), cp.spawnSync('false').status);
  await Promise.all([1, 2, 3, 4].map(n => new Promise(done => {
    const w = new Worker(`require('fs').writeFileSync('w${n}', 'worker'); require('worker_threads').parentPort.postMessage(${n})`, { eval: true });
    w.on('message', m => m === n || console.log('wrong')); w.on('exit', done);
  })));
  const kid = cp.fork('./kid.js'); kid.on('message', m => console.log('kid says', m)); kid.send('hi');
  await new Promise(done => kid.on('exit', done));
  const server = net.createServer(s => s.pipe(s)).listen('./sock', () => {
    const c = net.connect('./sock', () => c.write('echo')); c.on('data', d => { console.log(d.toString()); c.end(); server.close(); });
  });
  process.on('exit', code => console.log('exit', code));
})();
JS
echo "process.on('message', m => { process.send(m + '!'); process.disconnect(); });" >kid.js
node a.js; echo $?
node -e 'process.kill(process.pid, "SIGTERM")'; echo $?
node -e 'process.abort()' 2>/dev/null; echo $?
