// Lane: unit

import { redactSecrets } from '../../src';

test.each([
  ['app --password=geheim --port=80', 'app --password=*** --port=80'],
  ['app --db-password geheim --port 80', 'app --db-password *** --port 80'],
  ['app --token -v', 'app --token -v'],
  ['env DB_PASSWORD=geheim API_KEY=abc server', 'env DB_PASSWORD=*** API_KEY=*** server'],
  ['curl -u user:geheim https://host/', 'curl -u *** https://host/'],
  ['curl https://user:geheim@host/path', 'curl https://user:***@host/path'],
  ['mysql -pgeheim -u root', 'mysql -p*** -u root'],
  ['psql postgres://me:ge:heim@db/x', 'psql postgres://me:***@db/x'],
  ['/usr/bin/sshpass -p geheim ssh host', '/usr/bin/sshpass -p *** ssh host'],
  ['node server.js --author=me --keyboard=de', 'node server.js --author=me --keyboard=de'],
  ['cp -p a b', 'cp -p a b'],
  ['ls --authority', 'ls --authority'],
  ['app --password=Tr0ub4dor&3,x', 'app --password=***'],
  ['app --password -Secret1 --port', 'app --password *** --port'],
  ['app PASSWORD=&a;b', 'app PASSWORD=***'],
  ['sudo -u me mysql -pgeheim db', 'sudo -u me mysql -p*** db'],
  ['docker run --env=DB_PASSWORD=geheim x', 'docker run --env=DB_PASSWORD=*** x'],
  ['helm --set=auth.password=geheim', 'helm --set=auth.password=***'],
  ['kubectl create secret generic x --from-literal=password=y', null],
  ['curl -uuser:geheim -ksu user:geheim https://host/', 'curl -u*** -ksu *** https://host/'],
  ['mongosh -p geheim', 'mongosh -p ***'],
  ['sqlplus scott/tiger@db', 'sqlplus scott/***'],
  ['x redis://:p@ss@host/0', 'x redis://:***@host/0'],
  ['x postgres://u:a/b@host', 'x postgres://u:***@host'],
  ['x postgres://u:12345@host', 'x postgres://u:***@host'],
  ['git clone https://ghp_0123456789abcdefghij@github.com/x', 'git clone https://***@github.com/x'],
  ['x http://host:8080/a@2x.png', 'x http://host:8080/a@2x.png'],
  ['x https://host/a:b@c', 'x https://host/a:b@c'],
  ['az AccountKey=geheim==', 'az AccountKey=***'],
])('%s', (line, shown) => {
  const hidden = redactSecrets(line.split(' ')).join(' ');
  if (shown === null) expect(hidden).toMatch(/=password=\*\*\*$/);
  else expect(hidden).toBe(shown);
});

test('what a shell is to run', () => {
  const shown = (text: string) => redactSecrets(['sh', '-c', text])[2];
  expect(shown('mysqldump -u root -pGEHEIM db > f')).toBe('mysqldump -u root -p*** db > f');
  expect(shown('exec curl -u user:geheim https://x')).toBe('exec curl -u *** https://x');
  expect(shown('app --token abc --port 8')).toBe('app --token *** --port 8');
  expect(shown('cd /srv && "/usr/bin/sshpass" -pgeheim ssh h')).toBe(
    'cd /srv && "/usr/bin/sshpass" -p*** ssh h',
  );
  expect(redactSecrets(['mysql', '-pmy secret'])).toEqual(['mysql', '-p***']);
  expect(redactSecrets(['app', '--password', 'my secret'])).toEqual(['app', '--password', '***']);
});

test('costs no time for arguments of any form', () => {
  const parts = ['-pass', 'pass:', 'a.', 'https://', '@', '"token', '=', ' -p', 'bearer ', '://a:'];
  parts.push('-key=', 'proxy=a:', '$(', '"a', '; ', 'a1_', '=a;', "'\\");
  for (const part of parts) {
    const began = process.cpuUsage();
    redactSecrets([part.repeat(4096 / part.length), `${part.repeat(2000)}=x`]);
    redactSecrets(['mysql', `a ${part.repeat(2000)}@ …`, `https://${part.repeat(2000)}…`]);
    const { user } = process.cpuUsage(began);
    expect({ part, isCheap: user < 1_000_000 }).toEqual({ part, isCheap: true });
  }
});

test('headers and JSON', () => {
  const args = [
    'curl',
    '-H',
    'Authorization: Bearer abc.def',
    '-d',
    '{"secret": "x", "name": "y"}',
  ];
  expect(redactSecrets(args)).toEqual([
    ...['curl', '-H', 'Authorization: ***', '-d', '{"secret": "***", "name": "y"}'],
  ]);
  expect(redactSecrets(['wget', '--header=Authorization: Bearer abcdefgh'])).toEqual([
    ...['wget', '--header=Authorization: ***'],
  ]);
  expect(redactSecrets(['curl', '-H', 'Cookie: theme=dark; _session=X'])).toEqual([
    ...['curl', '-H', 'Cookie: ***'],
  ]);
});

test('more patterns: a group, or all of a match', () => {
  const more = [/--pin=(\d+)/, /customer-\w+/g, /user=\w+ pin=(\w+)/];
  const args = ['x', '--pin=1234', 'customer-a and customer-b', 'user=bob pin=bob'];
  expect(redactSecrets(args, more)).toEqual([
    ...['x', '--pin=***', '*** and ***', 'user=bob pin=***'],
  ]);
});

const hidden = (line: string) => redactSecrets(line.split(' ')).join(' ');
const hiddenText = (text: string) => redactSecrets(['sh', '-c', text])[2];

test.each([
  ['x https://proxy.corp/https://user:geheim@host/', 'x https://proxy.corp/https://user:***@host/'],
  [
    'etcdctl --endpoints=https://10.0.0.1:2379/,https://root:geheim@10.0.0.2:2379',
    'etcdctl --endpoints=https://10.0.0.1:2379/,https://root:***@10.0.0.2:2379',
  ],
  ['x ["https://a/x","https://u:geheim@h"]', 'x ["https://a/x","https://u:***@h"]'],
  ['x https://u:a://geheim@h', 'x https://u:***@h'],
  [
    'x https://a/,https://ghp_0123456789abcdefghij@h/a@b,https://u:geheim@h/',
    'x https://a/,https://***@h/a@b,https://u:***@h/',
  ],
  ['x https://ghp_0123456789abcdefghij:x-oauth-basic@h/', 'x https://***@h/'],
  [String.raw`x {"url":"https:\/\/u:geheim@h"}`, String.raw`x {"url":"https:\/\/u:***@h"}`],
  ['x http://h/?to=https%3A%2F%2Fu%3Ageheim%40h%2F', 'x http://h/?to=https%3A%2F%2Fu%3A***%40h%2F'],
  ['x jdbc:oracle:thin:scott/geheim@db:1521', 'x jdbc:oracle:thin:scott/***@db:1521'],
  ['x http://[::1]:8080/a@2x.png', 'x http://[::1]:8080/a@2x.png'],
  ['x https://host/a?b=c:d@e', 'x https://host/a?b=c:d@e'],
])('a password in any URL of a word: %s', (line, shown) => {
  expect(hidden(line)).toBe(shown);
});

test.each([
  ['java -Daws.secretKey=geheim', 'java -Daws.secretKey=***'],
  ['x --secretKey=geheim', 'x --secretKey=***'],
  ['x --clientSecretValue geheim', 'x --clientSecretValue ***'],
  ['x SECRETKEY=geheim secretkey=geheim', 'x SECRETKEY=*** secretkey=***'],
  ['x PASSWORDHASH=geheim --dbPw=geheim', 'x PASSWORDHASH=*** --dbPw=***'],
  ['tailscale up --authkey geheim', 'tailscale up --authkey ***'],
  ['skopeo copy --src-creds u:geheim a b', 'skopeo copy --src-creds *** a b'],
  [`x ${'--long'.repeat(50)}-password=geheim`, `x ${'--long'.repeat(50)}-password=***`],
  ['x --passThrough=a --tokenizer=b', 'x --passThrough=a --tokenizer=b'],
  ['x --authorName=me --keyboardLayout=de', 'x --authorName=me --keyboardLayout=de'],
])('a name in camel case, or written as one word: %s', (line, shown) => {
  expect(hidden(line)).toBe(shown);
});

test.each([
  ['zcat d.gz|mysql -pgeheim db', 'zcat d.gz|mysql -p*** db'],
  ['cd /x;mysql -pgeheim db', 'cd /x;mysql -p*** db'],
  ['cd /x&&mysql -pgeheim db', 'cd /x&&mysql -p*** db'],
  ['mysql<dump -pgeheim', 'mysql<dump -p***'],
  ['mysql -pgeheim|curl -u a:geheim h', 'mysql -p*** -u *** h'],
  ['app --token geheim|mysql -pgeheim', 'app --token *** -p***'],
  ["mysql -p'mein geheim;x' db", 'mysql -p*** db'],
  ['app --token "mein geheim" --port 8', 'app --token *** --port 8'],
  ['sh -c "curl -u a:geheim h" x', 'sh -c "curl -u *** h" x'],
  ['["mongosh", "-p", "geheim", "db"]', '["mongosh", "-p", *** "db"]'],
  ['PASSWORD=ge"hei m" app --port 8', 'PASSWORD=*** app --port 8'],
  ['x --env=PASSWORD=gehe,im y', 'x --env=PASSWORD=*** y'],
  ['./run --token=gehe,im --flag a,b', './run --token=*** --flag a,b'],
  ['Server=h; Password=mein geheim; User=a', 'Server=h; Password=***; User=a'],
  ['Password=mein geheim;User Id=a', 'Password=***;User Id=a'],
  ['x user=a&password=mein geheim&b=c', 'x user=a&password=***&b=c'],
  ['password = mein geheim', 'password = ***'],
  ['curl -H "Cookie: a=b; s=geheim" h', 'curl -H "Cookie: ***" h'],
])('text for a shell: %s', (text, shown) => {
  expect(hiddenText(text)).toBe(shown);
});

test.each([
  ['API_TOKEN=abc kill -9 1234', 'API_TOKEN=*** kill -9 1234'],
  ['export API_TOKEN=abc; kill -9 1234', 'export API_TOKEN=***; kill -9 1234'],
  ['API_TOKEN=abc&&kill -9 1234', 'API_TOKEN=***&&kill -9 1234'],
  ['API_TOKEN=abc\nkill -9 1234', 'API_TOKEN=***\nkill -9 1234'],
  ['PASSWORD=ge"h;e im" kill 1', 'PASSWORD=*** kill 1'],
  [String.raw`PASSWORD=ge\ h"e\"i m" kill 1`, 'PASSWORD=*** kill 1'],
  ['PASSWORD=$(echo geheim | base64 -d) kill 1', 'PASSWORD=*** kill 1'],
  ['PASSWORD=a`echo geheim`b kill 1', 'PASSWORD=*** kill 1'],
  ['java -Dpassword=geheim -jar a.jar', 'java -Dpassword=*** -jar a.jar'],
  ['host=db user=app password=ge&hei;m|x', 'host=db user=app password=***'],
])('a value ends with the word of the shell: %j', (text, shown) => {
  expect(hiddenText(text)).toBe(shown);
});

test.each([
  'curl -f http://h/ || systemctl --user restart web',
  'curl -f http://h/; sudo -u bob systemctl restart web',
  'curl -f http://h/ |sudo -u bob tee a',
  'curl -f http://h/ & journalctl -u nginx',
  'curl -f http://h/\njournalctl -u nginx',
  'git config user.name me; x password y',
  'app --token; systemctl restart web',
  'redis-cli AUTH && systemctl restart web',
])('what one command says does not count for the next one: %j', (text) => {
  expect(hiddenText(text)).toBe(text);
});

test.each([
  ['curl "http://h/;" -u a:geheim', 'curl "http://h/;" -u ***'],
  ['curl -H "a; b" -u a:geheim', 'curl -H "a; b" -u ***'],
  [String.raw`curl -H "\"a; b" -u a:geheim`, String.raw`curl -H "\"a; b" -u ***`],
  [String.raw`curl -H 'a\' -d 'b; c' -u a:geheim`, String.raw`curl -H 'a\' -d 'b; c' -u ***`],
  ['curl http://h/?a=1&b=2 -u a:geheim', 'curl http://h/?a=1&b=2 -u ***'],
  ['curl h &>/dev/null -u a:geheim', 'curl h &>/dev/null -u ***'],
  ['curl h 2>& 1 -u a:geheim', 'curl h 2>& 1 -u ***'],
  ['curl -s \\\n  -u a:geheim', 'curl -s \\\n  -u ***'],
  ['["mongosh",\n  "-p",\n  "geheim"]', '["mongosh",\n  "-p",\n  ***'],
  ['app --token\n geheim', 'app --token\n ***'],
  ["echo it's; curl -u a:geheim h", "echo it's; curl -u *** h"],
])('a command ends only where a shell ends it: %j', (text, shown) => {
  expect(hiddenText(text)).toBe(shown);
});

const KEY = 'c3Ri0VhbGx5bm90LWE9zZWNyZXQtYnV0bG9uZw==';

test.each([
  [`env STRIPE_KEY=sk_live_abc x`, 'env STRIPE_KEY=*** x'],
  [`env AIRFLOW__CORE__FERNET_KEY=${KEY} x`, 'env AIRFLOW__CORE__FERNET_KEY=*** x'],
  [`x --fernet-key ${KEY} y`, 'x --fernet-key *** y'],
  [`x --fernetKey=${KEY} y`, 'x --fernetKey=*** y'],
  ['x --tls-key=/etc/ssl/private/server-2026-key.pem', null],
  ['x --tls-key=certs/server-2026/client12345.key', null],
  ['x --tls-key /run/secrets/client-key-0123456789', null],
  ['x --sort-key=name --cache-key=linux-3f2a9c1b04de5f6a', null],
  ['x --row-key=customer_order_id_2 primary_key=3f2a9c1b04de5f6a', null],
  ['x --kms-key=arn:aws:kms:eu-west-1:123456789012:key/3f2a9c1b', null],
  ['x PUBLIC_KEY=c3Ri0VhbGx5bm90LWE9zZW hotkey=c3Ri0VhbGx5bm90LWE9zZW', null],
  ['x --fernet-key -u abc', null],
])('the value of a name that ends in key, if it looks like one: %s', (line, shown) => {
  expect(hidden(line)).toBe(shown ?? line);
});

test('a header whose name ends in key', () => {
  const args = ['curl', '-H', `x-functions-key: ${KEY}`, 'https://h/'];
  expect(redactSecrets(args)).toEqual(['curl', '-H', 'x-functions-key: ***', 'https://h/']);
  expect(hiddenText(`curl -H "x-functions-key: ${KEY}" h`)).toBe(
    'curl -H "x-functions-key: ***" h',
  );
});

test.each([
  ['curl -x user:geheim@proxy:8080 h', 'curl -x user:***@proxy:8080 h'],
  ['curl -sx user:ge@heim@proxy:8080 h', 'curl -sx user:***@proxy:8080 h'],
  ['curl -xbob:geheim@proxy:8080 h', 'curl -xbob:***@proxy:8080 h'],
  ['curl --proxy user:geheim@proxy h', 'curl --proxy user:***@proxy h'],
  ['pip install --proxy=user:geheim@proxy:80 x', 'pip install --proxy=user:***@proxy:80 x'],
  ['env HTTPS_PROXY=user:geheim@proxy x', 'env HTTPS_PROXY=user:***@proxy x'],
  ['env all_proxy=http://user:geheim@proxy x', 'env all_proxy=http://user:***@proxy x'],
  ['npm config set proxy user:geheim@proxy:80', 'npm config set proxy user:***@proxy:80'],
  ['curl --proxy proxy:8080 user@h', 'curl --proxy proxy:8080 user@h'],
  ['curl -x http://proxy:8080 http://h/@a', 'curl -x http://proxy:8080 http://h/@a'],
  ['zip -x -P geheim a', 'zip -x -P *** a'],
  ['nginx -g proxy_pass: a@b', 'nginx -g proxy_pass: a@b'],
])('the password of a proxy: %s', (line, shown) => {
  expect(hidden(line)).toBe(shown);
});

test.each([
  [
    String.raw`curl -d "{\"password\":\"geheim\"}" h`,
    String.raw`curl -d "{\"password\":\"***\"}" h`,
  ],
  [
    String.raw`sh -c "curl -d \"{\\\"token\\\": \\\"geheim\\\", \\\"a\\\": 1}\" h"`,
    String.raw`sh -c "curl -d \"{\\\"token\\\": \\\"***\\\", \\\"a\\\": 1}\" h"`,
  ],
  [String.raw`x {"password":"ge\"heim\\","a":1}`, String.raw`x {"password":"***","a":1}`],
  ['x {"passwords": ["geheim", "geheim"], "a": 1}', 'x {"passwords": ***, "a": 1}'],
  ['x {"credentials": {"a": {"b": "geheim"}}, "c": 1}', 'x {"credentials": ***, "c": 1}'],
  ['x [{"name": "DB_PASSWORD", "value": "geheim"}]', 'x [{"name": "DB_PASSWORD", "value": "***"}]'],
  ['x Name=PASSWORD,Value=geheim', 'x Name=PASSWORD,Value=***'],
  ['x {"password" => "geheim", "a" => 1}', 'x {"password" => "***", "a" => 1}'],
  ['x if password == "geheim"', 'x if password == "***"'],
  ["x d = {'token': b'geheim', 'a': 1}", "x d = {'token': b'***', 'a': 1}"],
  [
    'x <a password="geheim"><password>geheim</password></a>',
    'x <a password="***"><password>***</password></a>',
  ],
  ['x %7B%22password%22%3A%22geheim%22%7D', 'x %7B%22password%22%3A%22***%22%7D'],
])('values in any notation: %s', (text, shown) => {
  expect(hiddenText(text)).toBe(shown);
});

test.each([
  ["ALTER ROLE a PASSWORD 'ge''heim' VALID", "ALTER ROLE a PASSWORD '***' VALID"],
  ["ALTER LOGIN a WITH PASSWORD = N'geheim'", "ALTER LOGIN a WITH PASSWORD = N'***'"],
  ["SET PASSWORD FOR a = PASSWORD('geheim')", "SET PASSWORD FOR a = PASSWORD('***')"],
  ["CREATE USER a IDENTIFIED BY 'geheim'; SELECT 1", "CREATE USER a IDENTIFIED BY '***'; SELECT 1"],
  ['ALTER USER a IDENTIFIED BY geheim; SELECT 1', 'ALTER USER a IDENTIFIED BY ***; SELECT 1'],
])('SQL: %s', (statement, shown) => {
  expect(redactSecrets(['psql', '-c', statement])).toEqual(['psql', '-c', shown]);
});

test.each([
  ['x https://a.blob.core.windows.net/c?sv=2024&sig=gehe%2Bim&se=1', '?sv=2024&sig=***&se=1'],
  ['x https://h/?X-Amz-Signature=geheim&a=1', '?X-Amz-Signature=***&a=1'],
  ['x https://maps/?key=AIzaSy0123456789abcdef&q=x', '?key=***&q=x'],
  ['x https://h/?key=name&code=7&design=1', '?key=name&code=7&design=1'],
])('what signs a URL: %s', (line, shown) => {
  expect(hidden(line)).toMatch(new RegExp(`${shown.replace(/[?*]/g, String.raw`\$&`)}$`));
});

test.each([
  ['unzip -Pgeheim a.zip', 'unzip -P*** a.zip'],
  ['zip -9rP geheim a.zip b', 'zip -9rP *** a.zip b'],
  ['sqlcmd -S db -Pgeheim', 'sqlcmd -S db -P***'],
  ['smbclient -Uuser%geheim //h/s', 'smbclient -Uuser%*** //h/s'],
  ['smbclient --user=user%geheim //h/s', 'smbclient --user=user%*** //h/s'],
  ['mosquitto_pub -P geheim -t a', 'mosquitto_pub -P *** -t a'],
  ['mosquitto_sub --pw geheim -t a', 'mosquitto_sub --pw *** -t a'],
  ['docker login -u me -pgeheim', 'docker login -u me -p***'],
  ['docker login -u me -p geheim', 'docker login -u me -p ***'],
  ['docker run -p 8080:80 -p8081:81 x', 'docker run -p 8080:80 -p8081:81 x'],
  ['ssh-keygen -t rsa -N geheim', 'ssh-keygen -t rsa -N ***'],
  ['snmpget -v2c -cgeheim h', 'snmpget -v2c -c*** h'],
  ['mysql -pgeheimx -pa-key db', 'mysql -p*** -p*** db'],
  ['mysqldump -Bpgeheim a', 'mysqldump -Bp*** a'],
  ['ldapsearch -LLLxwgeheim -b dc', 'ldapsearch -LLLxw*** -b dc'],
  ['git config x.password geheim', 'git config x.password ***'],
  ['git commit token.c a.c', 'git commit token.c a.c'],
  ['aws configure set aws_secret_access_key geheim', 'aws configure set aws_secret_access_key ***'],
  [
    'kubectl create secret generic x --from-literal=a=geheim',
    'kubectl create secret generic x --from-literal=a=***',
  ],
  ['nmcli dev wifi connect x password geheim', 'nmcli dev wifi connect x password ***'],
  ['redis-cli AUTH geheim', 'redis-cli AUTH ***'],
  ['redis-cli AUTH user geheim', 'redis-cli AUTH *** ***'],
  ['redis-cli AUTH geheim -n 1', 'redis-cli AUTH *** -n 1'],
  ['xfreerdp /u:me /p:geheim /v:h', 'xfreerdp /u:me /p:*** /v:h'],
  [
    'qemu -object secret,id=s,data=geheim,format=raw',
    'qemu -object secret,id=s,data=***,format=raw',
  ],
  [
    'qemu -object {"qom-type":"secret","id":"s","data":"geheim"}',
    'qemu -object {"qom-type":"secret","id":"s","data":"***"}',
  ],
  ['qemu -net user -U a', 'qemu -net user -U a'],
  ['pytest test_auth.py::test_login --bypass=a', 'pytest test_auth.py::test_login --bypass=a'],
])('options of well-known programs: %s', (line, shown) => {
  expect(hidden(line)).toBe(shown);
});

test.each([
  ['x https://user:gehe…', 'x https://user:***…'],
  ['x https://user:ge@he…', 'x https://user:***…'],
  ['x https://user:geheim@host/pa…', 'x https://user:***@host/pa…'],
  [
    'x https://a:1/,https://u:geheim@h/,https://root:gehe…',
    'x https://a:1/,https://u:***@h/,https://root:***…',
  ],
  ['x https://ghp_0123456789abcdefghij…', 'x https://***…'],
  ['x https://host:8080/pa…', 'x https://host:8080/pa…'],
  ['x https://host/a:b…', 'x https://host/a:b…'],
  ['x https://user:gehe… y', 'x https://user:gehe… y'],
  ['x --password=gehe…', 'x --password=***…'],
  ['mysql -pgehe…', 'mysql -p***…'],
  ['x {"token":"gehe…', 'x {"token":"***…'],
])('what was cut off ends where a secret may go on: %s', (line, shown) => {
  expect(hidden(line)).toBe(shown);
});
