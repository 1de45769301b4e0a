// Lane: unit

import { H, H2, MANAGER, POD, POD_, testPaths, USER } from '../support/places';

/** The hash of a static pod's file. */
const STATIC = 'c5d4d8c1e8e0cfbc1b7f4ab3d5d3b0fa';

testPaths('Docker', [
  [`/docker/${H}`, [`container docker ${H}`]],
  [
    `/system.slice/docker-${H}.scope`,
    [`docker-${H}.scope in system.slice`, `container docker ${H}`],
  ],
  // Rootless.
  [
    `${USER}/user.slice/docker-${H}.scope`,
    [MANAGER, `docker-${H}.scope in user.slice of user uid 1000`, `container docker ${H}`],
  ],
  // With crun.
  [
    `/system.slice/docker-${H}.scope/container`,
    [`docker-${H}.scope in system.slice`, `container docker ${H}`],
  ],
  // ECS.
  [
    `/ecstasks.slice/ecstasks-0a1b2c.slice/docker-${H}.scope`,
    [`docker-${H}.scope in ecstasks-0a1b2c.slice`, `container docker ${H}`],
  ],
  // Docker in Docker.
  [`/docker/${H}/docker/${H2}`, [`container docker ${H}`, `container docker ${H2}`]],
  [`/docker/${H}/init`, [`container docker ${H}`], 'unrecognized'],
  // A systemd in a container.
  [
    `/system.slice/docker-${H}.scope/system.slice/sshd.service`,
    [`docker-${H}.scope in system.slice`, `container docker ${H}`, 'sshd.service in system.slice'],
  ],
  // With a parent of one's own: who knows whose digits these are.
  [`/tenants/${H}`, [], 'unrecognized'],
  [`/tenants/docker/${H}`, [`container docker ${H}`], 'unrecognized'],
  [`/system.slice:docker:${H}`, [`container docker ${H}`]],
  ['/docker/buildkit/5cf82fwiumld3vcs5d5l5pzyv', ['container buildkit 5cf82fwiumld3vcs5d5l5pzyv']],
  [
    `/docker/${H}/buildkit/5cf82fwiumld3vcs5d5l5pzyv`,
    [`container docker ${H}`, 'container buildkit 5cf82fwiumld3vcs5d5l5pzyv'],
  ],
]);

testPaths('digits that are no container', [
  [`/${H}`, [], 'unrecognized'],
  [`/docker/${H.slice(1)}`, [], 'unrecognized'],
  [`/docker/${H}0`, [], 'unrecognized'],
  [`/docker/${H.toUpperCase()}`, [], 'unrecognized'],
  [`/docker/${H.slice(0, 12)}`, [], 'unrecognized'],
  [`/system.slice/docker-${H.slice(1)}.scope`, [`docker-${H.slice(1)}.scope in system.slice`]],
  [`/system.slice/docker-${H}.service`, [`docker-${H}.service in system.slice`]],
  [`/system.slice/${H}.service`, [`${H}.service in system.slice`]],
  // A container of a runtime that exitwatch does not know, or what somebody called so.
  [`/system.slice/runc-${H}.scope`, [`runc-${H}.scope in system.slice`], 'unrecognized'],
  [`/system.slice/web.service/${H}`, ['web.service in system.slice'], 'unrecognized'],
  ['/docker', [], 'unrecognized'],
  [`/libpod_parent/${H.slice(1)}`, [], 'unrecognized'],
  ['/buildkit/short', [], 'unrecognized'],
]);

const POD_PATH = `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${POD_}.slice`;
const POD_SLICE = `kubepods-burstable-pod${POD_}.slice`;
const POD_WORDS = `pod kubernetes ${POD}`;

testPaths('Kubernetes', [
  [POD_PATH, [POD_WORDS]],
  [
    `${POD_PATH}/cri-containerd-${H}.scope`,
    [POD_WORDS, `cri-containerd-${H}.scope in ${POD_SLICE}`, `container containerd ${H}`],
  ],
  [
    `${POD_PATH}/crio-${H}.scope/container`,
    [POD_WORDS, `crio-${H}.scope in ${POD_SLICE}`, `container cri-o ${H}`],
  ],
  [
    `${POD_PATH}/crio-conmon-${H}.scope`,
    [POD_WORDS, `crio-conmon-${H}.scope in ${POD_SLICE}`, `monitor of container cri-o ${H}`],
  ],
  [
    `${POD_PATH}/docker-${H}.scope`,
    [POD_WORDS, `docker-${H}.scope in ${POD_SLICE}`, `container docker ${H}`],
  ],
  // The class "guaranteed" has no slice of its own.
  [
    `/kubepods.slice/kubepods-pod${POD_}.slice/cri-containerd-${H}.scope`,
    [
      POD_WORDS,
      `cri-containerd-${H}.scope in kubepods-pod${POD_}.slice`,
      `container containerd ${H}`,
    ],
  ],
  // A static pod.
  [
    `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${STATIC}.slice/cri-containerd-${H}.scope`,
    [
      `pod kubernetes ${STATIC}`,
      `cri-containerd-${H}.scope in kubepods-burstable-pod${STATIC}.slice`,
      `container containerd ${H}`,
    ],
  ],
  [`${POD_PATH}/${H}`, [POD_WORDS, `container unknown ${H}`]],
  [`/kubepods/burstable/pod${POD}/${H}`, [POD_WORDS, `container unknown ${H}`]],
  [`/kubepods/besteffort/pod${POD}/${H}`, [POD_WORDS, `container unknown ${H}`]],
  [`/kubepods/pod${POD}/${H}`, [POD_WORDS, `container unknown ${H}`]],
  [`/kubepods/burstable/pod${STATIC}/${H}`, [`pod kubernetes ${STATIC}`, `container unknown ${H}`]],
  [`/kubepods/burstable/pod${POD}`, [POD_WORDS]],
  [`/kubepods/burstable/pod${POD}/crio-${H}`, [POD_WORDS, `container cri-o ${H}`]],
  [
    `/kubepods/burstable/pod${POD}/crio-conmon-${H}`,
    [POD_WORDS, `monitor of container cri-o ${H}`],
  ],
  // The paths of the systemd driver, used by a runtime that is not configured for it.
  [
    `/kubepods-burstable-pod${POD_}.slice:cri-containerd:${H}`,
    [POD_WORDS, `container containerd ${H}`],
  ],
  [
    `/system.slice/containerd.service/kubepods-besteffort-pod${POD_}.slice:cri-containerd:${H}`,
    ['containerd.service in system.slice', POD_WORDS, `container containerd ${H}`],
  ],
  [
    `/system.slice/k3s.service/kubepods-pod${POD_}.slice:cri-containerd:${H}`,
    ['k3s.service in system.slice', POD_WORDS, `container containerd ${H}`],
  ],
  [
    `/system.slice/k0sworker.service/kubepods-besteffort-pod${POD_}.slice:cri-containerd:${H}`,
    ['k0sworker.service in system.slice', POD_WORDS, `container containerd ${H}`],
  ],
  [`/k3s/kubepods/burstable/pod${POD}/${H}`, [POD_WORDS, `container unknown ${H}`], 'unrecognized'],
  // kubelet --cgroup-root
  [
    `/prod.slice/prod-kubepods.slice/prod-kubepods-besteffort.slice/prod-kubepods-besteffort-pod${POD_}.slice/crio-${H}.scope`,
    [
      POD_WORDS,
      `crio-${H}.scope in prod-kubepods-besteffort-pod${POD_}.slice`,
      `container cri-o ${H}`,
    ],
  ],
  // kind, with both drivers.
  [
    `/docker/${H}/kubelet/kubepods/burstable/pod${POD}/${H2}`,
    [`container docker ${H}`, POD_WORDS, `container unknown ${H2}`],
  ],
  [
    `/system.slice/docker-${H}.scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/kubelet-kubepods-besteffort-pod${POD_}.slice/cri-containerd-${H2}.scope`,
    [
      `docker-${H}.scope in system.slice`,
      `container docker ${H}`,
      POD_WORDS,
      `cri-containerd-${H2}.scope in kubelet-kubepods-besteffort-pod${POD_}.slice`,
      `container containerd ${H2}`,
    ],
  ],
  // Docker in a pod.
  [
    `/kubepods/besteffort/pod${POD}/${H}/docker/${H2}`,
    [POD_WORDS, `container unknown ${H}`, `container docker ${H2}`],
  ],
  // Not a uid; and digits that are not directly in the pod.
  [`/kubepods/burstable/podweb/${H}`, [], 'unrecognized'],
  [`/kubepods/burstable/pod${POD}/x/${H}`, [POD_WORDS], 'unrecognized'],
  [
    `/kubepods.slice/kubepods-podweb.slice/cri-containerd-${H}.scope`,
    [`cri-containerd-${H}.scope in kubepods-podweb.slice`, `container containerd ${H}`],
  ],
  [`/kubepods.slice:cri-containerd:${H}:x`, [], 'unrecognized'],
  [`/kubepods:cri-containerd:${H}`, [], 'unrecognized'],
]);

testPaths('containerd without Kubernetes', [
  [
    `/system.slice/nerdctl-${H}.scope`,
    [`nerdctl-${H}.scope in system.slice`, `container containerd ${H}`],
  ],
  // The first part is a namespace, and may be anything.
  [`/default/${H}`, [], 'unrecognized'],
]);

testPaths('Podman', [
  [
    `/machine.slice/libpod-${H}.scope`,
    [`libpod-${H}.scope in machine.slice`, `container podman ${H}`],
  ],
  [
    `/machine.slice/libpod-${H}.scope/container`,
    [`libpod-${H}.scope in machine.slice`, `container podman ${H}`],
  ],
  [
    `/machine.slice/libpod-conmon-${H}.scope`,
    [`libpod-conmon-${H}.scope in machine.slice`, `monitor of container podman ${H}`],
  ],
  [
    `${USER}/user.slice/libpod-${H}.scope/container`,
    [MANAGER, `libpod-${H}.scope in user.slice of user uid 1000`, `container podman ${H}`],
  ],
  [
    `${USER}/user.slice/user-libpod_pod_${H}.slice/libpod-${H2}.scope`,
    [
      MANAGER,
      `pod podman ${H}`,
      `libpod-${H2}.scope in user-libpod_pod_${H}.slice of user uid 1000`,
      `container podman ${H2}`,
    ],
  ],
  [
    `/machine.slice/machine-libpod_pod_${H}.slice/libpod-${H2}.scope/container`,
    [
      `pod podman ${H}`,
      `libpod-${H2}.scope in machine-libpod_pod_${H}.slice`,
      `container podman ${H2}`,
    ],
  ],
  [`/libpod_parent/libpod-${H}`, [`container podman ${H}`]],
  [`/libpod_parent/${H}/libpod-${H2}`, [`pod podman ${H}`, `container podman ${H2}`]],
  ['/libpod_parent/conmon', [], 'unrecognized'],
  // Quadlets, of the system and of a user.
  [
    `/system.slice/web.service/libpod-payload-${H}`,
    ['web.service in system.slice', `container podman ${H}`],
  ],
  [
    `${USER}/app.slice/web@8000.service/libpod-payload-${H}`,
    [MANAGER, 'web@8000.service in app.slice of user uid 1000', `container podman ${H}`],
  ],
  // There Podman puts conmon and its network.
  ['/system.slice/web.service/runtime', ['web.service in system.slice'], 'unrecognized'],
  // A systemd in a container.
  [
    `/machine.slice/libpod-${H}.scope/container/system.slice/web.service`,
    [`libpod-${H}.scope in machine.slice`, `container podman ${H}`, 'web.service in system.slice'],
  ],
]);
