// Lane: unit

import { H, MANAGER, testPaths, USER } from '../support/places';

testPaths('LXC and Proxmox', [
  ['/lxc.payload.web', ['machine lxc web']],
  ['/lxc.payload.web/init.scope', ['machine lxc web', 'init.scope in -.slice']],
  [
    '/lxc.payload.shop_web/system.slice/nginx.service',
    ['machine lxc shop_web', 'nginx.service in system.slice'],
  ],
  ['/lxc.monitor.web', ['monitor of machine lxc web']],
  ['/lxc.payload/web', ['machine lxc web']],
  ['/lxc.monitor/101', ['monitor of machine lxc 101']],
  ['/lxc/web/system.slice/nginx.service', ['machine lxc web', 'nginx.service in system.slice']],
  ['/lxc/outer/lxc/inner', ['machine lxc outer', 'machine lxc inner']],
  // Unprivileged.
  [
    `${USER}/app.slice/run-u12.scope/lxc.payload.web`,
    [MANAGER, 'run-u12.scope in app.slice of user uid 1000', 'machine lxc web'],
  ],
  ['/lxc.payload.büro', ['machine lxc büro']],
  ['/lxc/101/ns', ['machine proxmox lxc 101']],
  ['/lxc/101/ns/init.scope', ['machine proxmox lxc 101', 'init.scope in -.slice']],
  [
    `/lxc/101/ns/system.slice/docker-${H}.scope`,
    ['machine proxmox lxc 101', `docker-${H}.scope in system.slice`, `container docker ${H}`],
  ],
  ['/qemu.slice/100.scope', ['100.scope in qemu.slice', 'machine proxmox qemu 100']],
  ['/qemu.slice/7.scope', ['7.scope in qemu.slice']],
  ['/qemu.slice/100.service', ['100.service in qemu.slice']],
  ['/system.slice/100.scope', ['100.scope in system.slice']],
  [
    '/system.slice/pve-container@101.service',
    ['pve-container@101.service in system.slice'],
    'runtime-unit',
  ],
  // A directory that a service calls so.
  ['/system.slice/ci.service/lxc/web', ['ci.service in system.slice'], 'unrecognized'],
  ['/lxc', [], 'unrecognized'],
  ['/lxc.payload', [], 'unrecognized'],
  ['/lxc.payload.', [], 'unrecognized'],
  ['/lxc.pivot', [], 'unrecognized'],
]);

const F30 = 'machine-qemu\\x2d1\\x2df30.scope';

testPaths('libvirt', [
  [
    `/machine.slice/${F30}/libvirt/emulator`,
    [`${F30} in machine.slice`, 'machine libvirt qemu 1 f30'],
  ],
  [
    `/machine.slice/${F30}/libvirt/vcpu0`,
    [`${F30} in machine.slice`, 'machine libvirt qemu 1 f30'],
  ],
  [`/machine.slice/${F30}/libvirt`, [`${F30} in machine.slice`, 'machine libvirt qemu 1 f30']],
  [`/machine.slice/${F30}`, [`${F30} in machine.slice`, 'machine libvirt qemu 1 f30']],
  [
    '/machine.slice/machine-qemu\\x2d18\\x2dDroplet\\x2d7572850.scope/emulator',
    [
      'machine-qemu\\x2d18\\x2dDroplet\\x2d7572850.scope in machine.slice',
      'machine libvirt qemu 18 Droplet-7572850',
    ],
  ],
  [
    '/machine.slice/machine-qemu\\x2d2\\x2da.example.org.scope/iothread1',
    [
      'machine-qemu\\x2d2\\x2da.example.org.scope in machine.slice',
      'machine libvirt qemu 2 a.example.org',
    ],
  ],
  [
    '/machine.slice/machine-lxc\\x2d63139\\x2dc39e9acf\\x2d517a.scope/libvirt',
    [
      'machine-lxc\\x2d63139\\x2dc39e9acf\\x2d517a.scope in machine.slice',
      'machine libvirt lxc 63139 c39e9acf-517a',
    ],
  ],
  [
    '/machine.slice/machine-qemu\\x2dembed\\x2d0a1b2c3d\\x2d1\\x2dweb.scope/libvirt/emulator',
    [
      'machine-qemu\\x2dembed\\x2d0a1b2c3d\\x2d1\\x2dweb.scope in machine.slice',
      'machine libvirt qemu 1 web',
    ],
  ],
  [
    `/machine.slice/${F30}/other`,
    [`${F30} in machine.slice`, 'machine libvirt qemu 1 f30'],
    'unrecognized',
  ],
  ['/machine/qemu-5-test.libvirt-qemu/emulator', ['machine libvirt qemu 5 test']],
  [
    '/machine/instance-0000013e.libvirt-qemu/vcpu0',
    ['machine libvirt qemu null instance-0000013e'],
  ],
  ['/machine/prod.partition/qemu-1-web.libvirt-qemu/libvirt/vcpu1', ['machine libvirt qemu 1 web']],
  ['/machine/_cpu.web.libvirt-lxc', ['machine libvirt lxc null cpu.web']],
  ['/machine.slice/web.libvirt-lxc', ['slice machine.slice', 'machine libvirt lxc null web']],
  // The driver is another: the whole is a name.
  ['/machine/qemu-1-web.libvirt-lxc', ['machine libvirt lxc null qemu-1-web']],
  ['/machine', [], 'unrecognized'],
  ['/machine/web', [], 'unrecognized'],
  ['/machine/web.libvirt-xen', [], 'unrecognized'],
  // A dash that is not escaped is a slash, which no machine has in its name.
  [
    '/machine.slice/machine-qemu-3-fedora.scope/libvirt/emulator',
    ['machine-qemu-3-fedora.scope in machine.slice'],
    'unrecognized',
  ],
]);

testPaths('systemd-nspawn and systemd-machined', [
  [
    '/machine.slice/systemd-nspawn@web.service/payload',
    ['systemd-nspawn@web.service in machine.slice', 'machine nspawn web'],
  ],
  [
    '/machine.slice/systemd-nspawn@web.service/payload/system.slice/nginx.service',
    [
      'systemd-nspawn@web.service in machine.slice',
      'machine nspawn web',
      'nginx.service in system.slice',
    ],
  ],
  [
    '/machine.slice/systemd-nspawn@web.service/supervisor',
    ['systemd-nspawn@web.service in machine.slice', 'monitor of machine nspawn web'],
  ],
  [
    '/machine.slice/systemd-nspawn@my-box.service/payload/init.scope',
    [
      'systemd-nspawn@my-box.service in machine.slice',
      'machine nspawn my-box',
      'init.scope in -.slice',
    ],
  ],
  [
    '/machine.slice/systemd-nspawn@my\\x2dbox.service/payload',
    ['systemd-nspawn@my\\x2dbox.service in machine.slice', 'machine nspawn my-box'],
  ],
  [
    '/machine.slice/systemd-nspawn@web.service',
    ['systemd-nspawn@web.service in machine.slice'],
    'runtime-unit',
  ],
  [
    '/machine.slice/machine-my\\x2dbox.scope/payload/system.slice/nginx.service',
    [
      'machine-my\\x2dbox.scope in machine.slice',
      'machine nspawn my-box',
      'nginx.service in system.slice',
    ],
  ],
  [
    '/machine.slice/machine-web.scope/supervisor',
    ['machine-web.scope in machine.slice', 'monitor of machine nspawn web'],
  ],
  [
    '/machine.slice/machine-web.scope',
    ['machine-web.scope in machine.slice', 'machine machined web'],
  ],
  // Somebody gave a container the name of a machine of libvirt.
  [
    '/machine.slice/machine-qemu\\x2d1\\x2dweb.scope/payload',
    ['machine-qemu\\x2d1\\x2dweb.scope in machine.slice', 'machine nspawn qemu-1-web'],
  ],
  [
    `${USER}/machine.slice/systemd-nspawn@web.service/payload/init.scope`,
    [
      MANAGER,
      'systemd-nspawn@web.service in machine.slice of user uid 1000',
      'machine nspawn web',
      'init.scope in -.slice',
    ],
  ],
  [
    '/machine.slice/systemd-nspawn@a:b.service/payload',
    ['systemd-nspawn@a:b.service in machine.slice'],
    'unrecognized',
  ],
  ['/machine.slice/machine-.scope', ['machine-.scope in machine.slice']],
]);
