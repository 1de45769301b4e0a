// Lane: unit

import { MANAGER, testPaths, USER } from '../support/places';

testPaths('systemd, the system’s units', [
  ['/init.scope', ['init.scope in -.slice']],
  ['/system.slice/nginx.service', ['nginx.service in system.slice']],
  [
    '/system.slice/system-getty.slice/getty@tty1.service',
    ['getty@tty1.service in system-getty.slice'],
  ],
  [
    '/system.slice/system-openvpn.slice/openvpn@a\\x2db.service',
    ['openvpn@a\\x2db.service in system-openvpn.slice'],
  ],
  [
    '/system.slice/dev-disk-by\\x2duuid-0a1b.swap',
    ['dev-disk-by\\x2duuid-0a1b.swap in system.slice'],
  ],
  ['/system.slice/var-lib.mount', ['var-lib.mount in system.slice']],
  ['/system.slice/run-u42.service', ['run-u42.service in system.slice']],
  ['/system.slice/_cpu.service', ['cpu.service in system.slice']],
  ['/system.slice/__secret.service', ['_secret.service in system.slice']],
  ['/system.slice/nginx.service (deleted)', ['nginx.service in system.slice']],
  ['//system.slice//nginx.service/', ['nginx.service in system.slice']],
  ['/system.slice/backup.service/.control', ['backup.service in system.slice']],
  [
    '/system.slice/postgresql.service/workers',
    ['postgresql.service in system.slice'],
    'unrecognized',
  ],
  // Not that of a systemd in it: who says that there is one?
  ['/system.slice/ci.service/job.service', ['ci.service in system.slice'], 'unrecognized'],
]);

testPaths('systemd, sessions and the users’ units', [
  [
    '/user.slice/user-1000.slice/session-2.scope',
    ['session-2.scope in user-1000.slice uid 1000 session 2'],
  ],
  [
    '/user.slice/user-0.slice/session-c1.scope',
    ['session-c1.scope in user-0.slice uid 0 session c1'],
  ],
  [USER, [MANAGER]],
  [`${USER}/init.scope`, [MANAGER, 'init.scope in -.slice of user uid 1000']],
  [
    `${USER}/app.slice/app-gnome-org.gnome.Terminal-4711.scope`,
    [MANAGER, 'app-gnome-org.gnome.Terminal-4711.scope in app.slice of user uid 1000'],
  ],
  [
    `${USER}/app.slice/app-gnome\\x2dsession\\x2dmanager.slice/gnome-session-manager@gnome.service`,
    [
      MANAGER,
      'gnome-session-manager@gnome.service in app-gnome\\x2dsession\\x2dmanager.slice of user uid 1000',
    ],
  ],
  [
    `${USER}/app.slice/app-dbus\\x2d:1.2\\x2dorg.a11y.atspi.Registry.slice/dbus-:1.2-org.a11y.atspi.Registry@0.service`,
    [
      MANAGER,
      'dbus-:1.2-org.a11y.atspi.Registry@0.service in app-dbus\\x2d:1.2\\x2dorg.a11y.atspi.Registry.slice of user uid 1000',
    ],
  ],
  [
    `${USER}/session.slice/pipewire.service`,
    [MANAGER, 'pipewire.service in session.slice of user uid 1000'],
  ],
  [
    `${USER}/app.slice/snap.firefox.firefox-0f5e1c9a.scope`,
    [MANAGER, 'snap.firefox.firefox-0f5e1c9a.scope in app.slice of user uid 1000'],
  ],
  [`${USER}/background.slice`, [MANAGER, 'slice background.slice'], 'slice'],
  [
    '/capsule.slice/capsule@web.service/app.slice/run-p9-i1.service',
    ['capsule@web.service in capsule.slice', 'run-p9-i1.service in app.slice of capsule'],
  ],
]);

testPaths('systemd, slices', [
  ['/system.slice', ['slice system.slice'], 'slice'],
  ['/user.slice/user-1000.slice', ['slice user-1000.slice'], 'slice'],
  ['/a.slice/a-b.slice/a-b-c.slice', ['slice a-b-c.slice'], 'slice'],
  ['/_memory.slice', ['slice memory.slice'], 'slice'],
  ['/system.slice/workers', ['slice system.slice'], 'unrecognized'],
]);

// What the cases of systemd's test-cgroup-util.c are about, with paths of our own.
testPaths('systemd, names that are no units', [
  ['/nothing', [], 'unrecognized'],
  ['/nothing/web.service', [], 'unrecognized'],
  ['/system.slice/getty@.service', ['slice system.slice'], 'unrecognized'],
  ['/system.slice/@tty1.service', ['slice system.slice'], 'unrecognized'],
  ['/system.slice/web.daemon', ['slice system.slice'], 'unrecognized'],
  ['/system.slice/.service', ['slice system.slice'], 'unrecognized'],
  ['/system.slice/web', ['slice system.slice'], 'unrecognized'],
  ['/system.slice/web##@1.service', ['slice system.slice'], 'unrecognized'],
  ['/system.slice/web server.service', ['slice system.slice'], 'unrecognized'],
  ['/system.slice/büro.service', ['slice system.slice'], 'unrecognized'],
  [`/system.slice/${'a'.repeat(248)}.service`, ['slice system.slice'], 'unrecognized'],
  [`/system.slice/${'a'.repeat(247)}.service`, [`${'a'.repeat(247)}.service in system.slice`]],
  // A slice is no template, and its instance no unit that follows slices.
  ['/system.slice/a@b.slice/web.service', ['slice system.slice'], 'unrecognized'],
  ['/.slice/web.service', [], 'unrecognized'],
]);

testPaths('systemd, who is the user', [
  [
    '/x.slice/x-y.slice/session-77.scope/web@1.service/a/b',
    ['session-77.scope in x-y.slice session 77', 'web@1.service in -.slice of user session 77'],
    'unrecognized',
  ],
  [
    '/user.slice/user-1000.slice/session-2.scope/work.slice/web.service',
    [
      'session-2.scope in user-1000.slice uid 1000 session 2',
      'web.service in work.slice of user uid 1000 session 2',
    ],
  ],
  [
    '/session-3.scope/_cpu.service',
    ['session-3.scope in -.slice session 3', 'cpu.service in -.slice of user session 3'],
  ],
  ['/session-.scope', ['session-.scope in -.slice']],
  ['/session-2_3.scope/web.service', ['session-2_3.scope in -.slice'], 'unrecognized'],
  ['/user.slice/user-web.slice/web.service', ['web.service in user-web.slice']],
  [
    '/user.slice/user-1000.slice/user@.service/web.service',
    ['slice user-1000.slice'],
    'unrecognized',
  ],
  [
    '/user.slice/user-7.slice/user@web.service/web.service',
    ['user@web.service in user-7.slice uid 7'],
    'unrecognized',
  ],
  ['/user.slice/user-4294967295.slice/web.service', ['web.service in user-4294967295.slice']],
  ['/user.slice/user-65535.slice/web.service', ['web.service in user-65535.slice']],
  ['/user.slice/user-01.slice/web.service', ['web.service in user-01.slice']],
  [
    '/user.slice/user-4294967294.slice/a.service',
    ['a.service in user-4294967294.slice uid 4294967294'],
  ],
  [
    '/capsule.slice/capsule@a:b.service/web.service',
    ['capsule@a:b.service in capsule.slice'],
    'unrecognized',
  ],
]);
