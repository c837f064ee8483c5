# SPDX-License-Identifier: Apache-2.0
"""OCI images from nothing: the server, the libraries that it needs, and no shell. An archive of an OCI layout,
which podman, docker (25 and later), skopeo and registries read.

One image is for the server alone, and one is for each framework; they share the server's layer.
"""

import json
import shutil
import time

import archive
import elf
import manual
import sbom
import stage
import tarball

HOME = "opt/nereid"
# Nobody, as in other images of this kind.
USER = 65532
# What getaddrinfo opens is in libc itself since glibc 2.34.
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"


def system_files(root):
    """The C library and what else every system has. Returns where it is from."""
    wanted = {name for path in archive.walk(root) if elf.is_elf(path) for name in elf.needed(path)}
    # What frameworks of users' own may ask for.
    wanted |= {"libdl.so.2", "libpthread.so.0", "librt.so.1", "libresolv.so.2", "libutil.so.1", "libm.so.6"}
    loader = next(name for name in elf.OF_EVERY_SYSTEM if name.startswith("ld-linux") and name in elf.loader_cache())
    origins = {}
    for name in sorted((wanted & elf.OF_EVERY_SYSTEM) - {loader}):
        source = elf.loader_cache().get(name)
        target = root / "lib" / f"{stage.machine()}-linux-gnu" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(0o755)
        origins.setdefault(stage.debian_package(source), []).append(str(target.relative_to(root)))
    place = root / ("lib64" if stage.machine() == "x86_64" else "lib") / loader
    place.parent.mkdir(exist_ok=True)
    shutil.copyfile(elf.loader_cache()[loader], place)
    place.chmod(0o755)
    origins.setdefault(stage.debian_package(elf.loader_cache()[loader]), []).append(str(place.relative_to(root)))
    return [stage.debian_origin(*facts, files=tuple(files)) for facts, files in sorted(origins.items())]


def settings_of_system(root):
    certificates = root / CERTIFICATES.lstrip("/")
    certificates.parent.mkdir(parents=True)
    shutil.copyfile(CERTIFICATES, certificates)
    (root / "etc/passwd").write_text(f"root:x:0:0:root:/:/\nnereid:x:{USER}:{USER}:nereid:/:/\n")
    (root / "etc/group").write_text(f"root:x:0:\nnereid:x:{USER}:\n")
    (root / "etc/nsswitch.conf").write_text("hosts: files dns\n")
    for folder in ("tmp", "models"):
        (root / folder).mkdir()


def server_layer(build, root, part, version):
    home = root / HOME
    origins = tarball.fill(build, home, [part], version)
    for folder in ("man", *(place.split("/")[0] for place in manual.COMPLETIONS.values())):
        shutil.rmtree(home / "share" / folder)
    origins = [stage.moved(origin, HOME) for origin in origins] + system_files(root)
    settings_of_system(root)
    stage.put_licenses(home / "share/doc/nereid/licenses", origins)
    sbom.write(home / "share/doc/nereid/sbom.spdx.json", "nereid-image", version, root, origins)


def config_of(version, layers):
    """What podman and docker do with the image if nothing else is said."""
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(archive.epoch()))
    program = f"/{HOME}/bin/nereid"
    second = 1_000_000_000
    health = {
        "Test": ["CMD", program, "health"],
        "Interval": 30 * second,
        "Timeout": 5 * second,
        "StartPeriod": 60 * second,
        "Retries": 3,
    }
    return {
        "created": created,
        "architecture": {"x86_64": "amd64", "aarch64": "arm64"}[stage.machine()],
        "os": "linux",
        "config": {
            "User": f"{USER}:{USER}",
            "ExposedPorts": {"8000/tcp": {}, "8001/tcp": {}, "8002/tcp": {}},
            "Env": [f"PATH=/{HOME}/bin"],
            "Entrypoint": [program],
            "Cmd": ["--model-repository=/models"],
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
            "Healthcheck": health,
            "Labels": {
                "org.opencontainers.image.title": "nereid",
                "org.opencontainers.image.version": version,
                "org.opencontainers.image.licenses": "Apache-2.0",
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{plain}" for _, plain in layers]},
        "history": [{"created": created, "created_by": "packaging/image.py"} for _ in layers],
    }


class Layout:
    """An OCI layout in a folder."""

    def __init__(self, folder):
        self.folder = folder
        self.blobs = folder / "blobs/sha256"
        self.blobs.mkdir(parents=True)

    def add(self, path, media_type):
        digest = archive.sha256(path)
        size = path.stat().st_size
        shutil.copyfile(path, self.blobs / digest)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": size}

    def add_json(self, value, media_type):
        path = self.folder / "value.json"
        path.write_text(json.dumps(value, sort_keys=True))
        described = self.add(path, media_type)
        path.unlink()
        return described

    def finish(self, name, version, layers):
        kind = "application/vnd.oci.image"
        manifest = {
            "schemaVersion": 2,
            "mediaType": f"{kind}.manifest.v1+json",
            "config": self.add_json(config_of(version, layers), f"{kind}.config.v1+json"),
            "layers": [self.add(path, f"{kind}.layer.v1.tar+gzip") for path, _ in layers],
        }
        described = self.add_json(manifest, manifest["mediaType"])
        described["annotations"] = {
            "org.opencontainers.image.ref.name": f"{name}:{version}",
            "io.containerd.image.name": f"localhost/{name}:{version}",
        }
        (self.folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [described]}, sort_keys=True))
        (self.folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        return sum(path.stat().st_size for path, _ in layers)


def make(build, out, work, parts, version):
    made = []
    server = None
    chosen = [part for part in parts if part.name == "nereid" or part.framework]
    for part in chosen:
        root = work / part.name
        root.mkdir()
        if part.name == "nereid":
            server_layer(build, root, part, version)
        else:
            tarball.fill(build, root / HOME, [part], version, part.name)
            models = ["digits", "simple"] if part.framework == "onnxruntime" else []
            stage.put_examples(root / HOME / "share/nereid/models", models)
        folder = work / f"{part.name}-layer"
        folder.mkdir()
        layer = archive.write_layer(folder, root, modes=[("tmp", 0o1777)])
        shutil.rmtree(root)
        server = server or layer
        layers = [server] if part.name == "nereid" else [server, layer]
        name = part.name.replace("nereid-backend-", "nereid-")
        layout = Layout(work / f"{part.name}-layout")
        layout.finish(name, version, layers)
        target = out / f"{name}-{version}-image-{stage.machine()}.tar"
        with target.open("wb") as file:
            archive.write_tar(file, layout.folder)
        shutil.rmtree(layout.folder)
        made.append(target)
    return made
